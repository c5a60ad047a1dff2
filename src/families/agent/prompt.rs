//! A prompt that is too long for an argument (agent.md, How pi is called): pi reads it from a file
//! whose name is the same for the same text, so that two runs of a task ask the model the same.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use super::agent_dir::add_prompt;
use crate::engine::launch::LaunchSpec;
use crate::limits::{AGENT_PROMPT_ARG_BYTES, AGENT_PROMPT_HASH_BYTES};
use crate::sys::errno::errno_text;
use crate::sys::memory_file::MemoryFile;
use crate::sys::proc_view;
use crate::wire::{Reason, RpcError};

/// Adds the last of pi's arguments, the prompt. Gives the memory in which the process that becomes
/// pi finds one that is too long, and which is held until the run is over: the loop writes to no
/// disk.
pub fn add(launch: &mut LaunchSpec, prompt: String) -> Result<Option<MemoryFile>, RpcError> {
    if prompt.len() <= AGENT_PROMPT_ARG_BYTES {
        launch.arguments.push(prompt.into());
        return Ok(None);
    }
    if let Some(why) = proc_view::lack() {
        let message = format!(
            "the prompt has {} bytes, which pi is handed through /proc, but {why}; one of \
             {AGENT_PROMPT_ARG_BYTES} bytes at most needs none",
            prompt.len()
        );
        return Err(RpcError::failed(Reason::System, message));
    }
    let file = MemoryFile::with(c"execd-prompt", prompt.as_bytes()).map_err(|errno| {
        let why = errno_text(errno);
        let message = format!("the prompt could not be put into a file in memory: {why}");
        RpcError::failed(Reason::System, message)
    })?;
    add_prompt(launch, file.path().into(), known_by(&prompt));
    Ok(Some(file))
}

/// What a text is known by: the beginning of its SHA-256.
fn known_by(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(AGENT_PROMPT_HASH_BYTES).fold(
        String::new(),
        |mut name, byte| {
            let _ = write!(name, "{byte:02x}");
            name
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_known_by_the_first_digits_of_its_sha256() {
        assert_eq!(known_by("abc"), "ba7816bf");
        assert_eq!(known_by(""), "e3b0c442");
    }
}
