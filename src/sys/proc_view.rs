//! Whether /proc tells of the processes here. Where it does not, only a session's leader, its
//! process group and PR_SET_PDEATHSIG are left to end it by.

use std::fs;
use std::sync::OnceLock;

use super::host;

/// Why /proc tells nothing of the processes here, for people; `None` where it does. Asked once.
pub fn lack() -> Option<&'static str> {
    static LACK: OnceLock<Option<&'static str>> = OnceLock::new();
    *LACK.get_or_init(|| match fs::read_link("/proc/self") {
        Ok(link) if link.as_os_str() == host::pid().to_string().as_str() => None,
        // The numbers in it are those of strangers.
        _ => Some("it is not mounted, or is that of another pid namespace"),
    })
}

/// Whether the numbers in /proc are those of the processes here.
pub fn tells() -> bool {
    lack().is_none()
}
