//! What tells a shell behind ssh that it is not the one of the login.

use std::ffi::CString;

/// The environment for children: behind ssh the bash of each command would take itself for that of
/// the login, and read a .bashrc, as bash(1) says of one that is run by a remote shell daemon. It
/// goes by these variables, and by SHLVL, which is 0 or unset where the shell of the login has
/// become execd.
pub fn below_the_login(mut variables: Vec<CString>) -> Vec<CString> {
    let has = |name: &[u8]| variables.iter().any(|entry| entry.to_bytes().starts_with(name));
    if !has(b"SSH_CLIENT=") && !has(b"SSH2_CLIENT=") {
        return variables;
    }
    let level = |entry: &CString| entry.to_bytes().strip_prefix(b"SHLVL=").map(is_above_zero);
    match variables.iter().position(|entry| level(entry).is_some()) {
        None => variables.push(c"SHLVL=1".to_owned()),
        Some(at) if level(&variables[at]) == Some(false) => variables[at] = c"SHLVL=1".to_owned(),
        Some(_) => {}
    }
    variables
}

/// Whether bash takes this for the level of a shell below another one: what is no number is 0.
fn is_above_zero(level: &[u8]) -> bool {
    let number = std::str::from_utf8(level).ok().and_then(|text| text.parse::<i64>().ok());
    number.is_some_and(|number| number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rule: machines.md, ssh: The commands of execd there read no .bashrc, as they read none here
    #[test]
    fn only_the_first_shell_behind_ssh_is_told_of_another_one() {
        for (given, changed) in [
            ("A=1 SHLVL=0", "A=1 SHLVL=0"),
            ("A=1", "A=1"),
            ("SSH_CLIENT=x SHLVL=0 A=1", "SSH_CLIENT=x SHLVL=1 A=1"),
            ("SSH2_CLIENT=x A=1", "SSH2_CLIENT=x A=1 SHLVL=1"),
            ("SSH_CLIENT=x SHLVL=", "SSH_CLIENT=x SHLVL=1"),
            ("SSH_CLIENT=x SHLVL=-2", "SSH_CLIENT=x SHLVL=1"),
            ("SSH_CLIENT=x SHLVL=x", "SSH_CLIENT=x SHLVL=1"),
            ("SHLVL=3 SSH_CLIENT=x", "SHLVL=3 SSH_CLIENT=x"),
            ("SSH_CLIENTS=x SHLVL=0", "SSH_CLIENTS=x SHLVL=0"),
        ] {
            let all = |text: &str| -> Vec<CString> {
                text.split(' ').map(|one| CString::new(one).unwrap()).collect()
            };
            assert_eq!(below_the_login(all(given)), all(changed), "{given}");
        }
    }
}
