//! The files of facts in the log directory, one beside each log (logs.md, Facts beside each log).

use super::index_files::PlacedFile;
use super::log_files::LogDir;
use crate::limits::LOG_BLOCK_BYTES;

/// How the file beside a log ends, in the place of `.log`.
const META_SUFFIX: &str = ".meta";

/// The name of the file beside the log of this name.
pub fn meta_name(log: &str) -> String {
    log.strip_suffix(".log").unwrap_or(log).to_owned() + META_SUFFIX
}

impl LogDir {
    /// Writes the facts beside a log, in the place of older ones. They are no longer than a block
    /// of the disk, so whoever reads finds the old line or the new one. Errors: openat(2),
    /// pwrite(2), ftruncate(2); EEXIST when the name belongs to something that is no file of ours.
    pub fn write_meta(&self, log: &str, line: &[u8]) -> Result<(), i32> {
        let file = self.open_ours(meta_name(log), libc::O_CREAT | libc::O_WRONLY)?;
        let file = PlacedFile::of(file);
        let line = [line, b"\n"].concat();
        file.write_at(&line, 0)?;
        if file.size()? > line.len() as u64 { file.cut(line.len() as u64) } else { Ok(()) }
    }

    /// The facts beside a log, as they stand in the file. Errors: openat(2), pread(2).
    pub fn read_meta(&self, log: &str) -> Result<Vec<u8>, i32> {
        let file = PlacedFile::of(self.open_ours(meta_name(log), libc::O_RDONLY)?);
        let mut line = vec![0; usize::try_from(LOG_BLOCK_BYTES).unwrap_or(0)];
        let length = file.read_at(&mut line, 0)?;
        line.truncate(length);
        Ok(line)
    }
}
