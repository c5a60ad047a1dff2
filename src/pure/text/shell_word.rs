//! Texts as a shell takes them, in scripts and in commands that people are told to type.

/// A text between single quotes of a shell.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A path as a shell takes it: between quotes where it needs them.
pub fn as_word(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+-,:@".contains(&byte);
    if path.bytes().all(plain) { path.to_owned() } else { quoted(path) }
}
