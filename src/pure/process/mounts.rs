//! Which paths lead onto a file system that may never answer: a program that must not stand still
//! asks nothing of such a file system. That is told from the list of mounts alone (proc(5),
//! mountinfo); what symbolic links say is a fact that the caller brings (src/sys/mounts.rs).

use crate::limits::PATH_LINKS_MAX;
use std::collections::BTreeSet;

/// File systems whose answers come from another machine or another process.
const MAY_HANG: [&str; 21] = [
    "9p", "acfs", "afs", "autofs", "beegfs", "ceph", "cifs", "coda", "fuse", "fuseblk", "gfs2",
    "gpfs", "lustre", "nfs", "nfs4", "ocfs2", "orangefs", "smb3", "smbfs", "vboxsf", "virtiofs",
];

/// The mounts that may hang.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mounts {
    /// Where they are; the root is empty.
    points: BTreeSet<Vec<u8>>,
    /// The mounts are not known: any may hang.
    unknown: bool,
}

/// What is at a path, as far as its own directory tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A symbolic link to this.
    Link(Vec<u8>),
    /// Something else.
    Other,
    /// Nothing.
    Missing,
}

impl Mounts {
    /// From the text of mountinfo. A line that is no line of it is passed over.
    pub fn of(mountinfo: &[u8]) -> Self {
        let lines = mountinfo.split(|byte| *byte == b'\n');
        Self { points: lines.filter_map(point_that_may_hang).collect(), unknown: false }
    }

    /// Where nobody knows the mounts.
    pub fn unknown() -> Self {
        Self { points: BTreeSet::new(), unknown: true }
    }

    /// Whether it is sure that no path can hang.
    pub fn none_may_hang(&self) -> bool {
        self.points.is_empty() && !self.unknown
    }

    /// Whether going the way of an absolute path may hang: it enters such a mount, be it to
    /// leave it again by `..` or for a mount inside. `entry` is asked for what is at places that
    /// lie on no such mount, and for nothing else.
    pub fn may_hang(&self, path: &[u8], entry: &mut impl FnMut(&[u8]) -> Entry) -> bool {
        let mut at = Vec::with_capacity(path.len());
        if self.unknown || self.points.contains(&at) {
            return true;
        }
        let mut links = 0;
        let mut left = names_of(path);
        while let Some(name) = left.pop() {
            if name == b".." {
                leave(&mut at);
                continue;
            }
            at.push(b'/');
            at.extend_from_slice(&name);
            if self.points.contains(&at) {
                return true;
            }
            match entry(&at) {
                Entry::Other => {}
                Entry::Missing => return false,
                Entry::Link(target) => {
                    links += 1;
                    if links > PATH_LINKS_MAX {
                        // The kernel goes no further either (ELOOP).
                        return false;
                    }
                    if target.first() == Some(&b'/') {
                        at.clear();
                    } else {
                        leave(&mut at);
                    }
                    left.append(&mut names_of(&target));
                }
            }
        }
        false
    }
}

/// The names of a path, the first one last.
fn names_of(path: &[u8]) -> Vec<Vec<u8>> {
    let names = path.split(|byte| *byte == b'/').rev();
    names.filter(|name| !matches!(name, [] | [b'.'])).map(<[u8]>::to_vec).collect()
}

/// From a path to its directory.
fn leave(at: &mut Vec<u8>) {
    let end = at.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    at.truncate(end);
}

/// The mount point of a line, where what is mounted there may hang.
fn point_that_may_hang(line: &[u8]) -> Option<Vec<u8>> {
    let mut fields = line.split(|byte| *byte == b' ');
    let point = fields.nth(4)?;
    // Optional fields, a dash, the type.
    let kind = std::str::from_utf8(fields.skip_while(|field| *field != b"-").nth(1)?).ok()?;
    let may = MAY_HANG.contains(&kind) || kind.starts_with("fuse.");
    // The root is the path without a name.
    may.then(|| if point == b"/" { Vec::new() } else { unescaped(point) })
}

/// Blanks, tabs, newlines and backslashes are written as three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, behind)) = rest.split_first() {
        let digits =
            behind.get(..3).filter(|digits| digits.iter().all(|b| (b'0'..=b'7').contains(b)));
        match digits.filter(|_| byte == b'\\') {
            Some(digits) => {
                let value =
                    digits.iter().fold(0_u32, |sum, digit| sum * 8 + u32::from(digit - b'0'));
                out.push(u8::try_from(value).unwrap_or(b'?'));
                rest = &behind[3..];
            }
            None => {
                out.push(byte);
                rest = behind;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 27 0:40 / /mnt/far rw,relatime shared:7 master:1 - nfs4 host:/x rw
41 40 0:41 / /mnt/far/near rw - tmpfs tmpfs rw
42 27 0:42 / /mnt/a\\040b\\134c rw - fuse.sshfs user@host: rw
43 22 0:43 / /sys/fs/fuse/connections rw - fusectl fusectl rw
broken line
";

    fn asked(path: &str) -> (bool, Vec<Vec<u8>>) {
        let mut asked = Vec::new();
        let links = [("/home/me/far", "../../mnt/far/me"), ("/loop", "loop"), ("/safe", "/home")];
        let may = Mounts::of(MOUNTINFO.as_bytes()).may_hang(path.as_bytes(), &mut |at| {
            asked.push(at.to_owned());
            match links.iter().find(|(from, _)| from.as_bytes() == at) {
                Some((_, to)) => Entry::Link(to.as_bytes().to_vec()),
                None if at.ends_with(b"missing") => Entry::Missing,
                None => Entry::Other,
            }
        });
        (may, asked)
    }

    /// rule: architecture.md, Starting a child: Which paths may hang is told without touching such
    ///   a file system
    #[test]
    fn a_path_that_enters_such_a_mount_may_hang() {
        for path in [
            "/mnt/far",
            "/mnt/far/x/y",
            "/mnt/far/near/x",
            "/mnt/./far/",
            "/mnt/far/../../bin",
            "/bin/../mnt/far",
            "/mnt/a b\\c/x",
            "/home/me/far/src",
            "/safe/me/far",
        ] {
            assert!(asked(path).0, "{path}");
        }
        let safe = ["/", "/bin/sh", "/mnt", "/mnt/farther", "/mnt/missing/../far", "/loop/x"];
        let own = ["/safe/me", "/sys/fs/fuse/connections/40", "/proc/self", "/../bin"];
        for path in safe.into_iter().chain(own) {
            assert!(!asked(path).0, "{path}");
        }
    }

    /// rule: architecture.md, Starting a child: Which paths may hang is told without touching such
    ///   a file system
    #[test]
    fn nothing_on_such_a_mount_is_asked_for() {
        for path in ["/mnt/far/x/y", "/home/me/far/src", "/mnt/far/near/x"] {
            let far = |at: &Vec<u8>| at.starts_with(b"/mnt/far");
            assert!(!asked(path).1.iter().any(far), "{path}");
        }
    }

    /// rule: architecture.md, Starting a child: Which paths may hang is told without touching such
    ///   a file system
    #[test]
    fn what_is_not_known_may_hang() {
        let asks = |mounts: Mounts| mounts.may_hang(b"/bin", &mut |_| Entry::Other);
        assert!(asks(Mounts::unknown()) && !Mounts::unknown().none_may_hang());
        assert!(!asks(Mounts::default()) && Mounts::default().none_may_hang());
        let root = b"27 1 0:9 / / rw - 9p root rw\n";
        assert!(asks(Mounts::of(root)), "a root that may hang");
    }
}
