//! What stands in the files of a run's own agent directory (agent.md, Isolation): pi's auth.json
//! with a key of the run, and its settings.json without extensions.

use serde_json::{Map, Value, json};

/// Settings by which pi loads extensions besides those that it is called with.
const EXTENSION_SETTINGS: [&str; 2] = ["extensions", "packages"];

/// An object in a file of JSON, as pi reads it: a byte order mark may stand in front.
fn object_of(text: &[u8]) -> Option<Map<String, Value>> {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    serde_json::from_slice(text).ok()
}

/// Whether the file is an object of JSON; one that is just being written is none.
pub fn is_object(text: &[u8]) -> bool {
    object_of(text).is_some()
}

/// An auth.json with this key for the provider, in place of what it had for it. What is no object
/// was of no use to pi either.
pub fn with_key(auth: Option<&[u8]>, provider: &str, key: &str) -> Vec<u8> {
    let mut all = auth.and_then(object_of).unwrap_or_default();
    all.insert(provider.to_owned(), json!({"type": "api_key", "key": key}));
    serde_json::to_vec(&all).unwrap_or_default()
}

/// Whether a file of pi's may say something of the provider: its name stands there as a string.
/// (Whether the file is JSON that every pi takes, who reads only that need not know.)
pub fn names(text: &[u8], provider: &str) -> bool {
    memchr::memmem::find(text, json!(provider).to_string().as_bytes()).is_some()
}

/// Whether every pi takes the key in its auth.json for what it is, and not for a command or for the
/// name of a variable.
pub fn is_plain_key(key: &str) -> bool {
    !key.starts_with('!') && !key.contains('$')
}

/// The settings without what loads extensions; as they are where they are no object.
pub fn without_extensions(settings: Vec<u8>) -> Vec<u8> {
    let Some(mut all) = object_of(&settings) else { return settings };
    for name in EXTENSION_SETTINGS {
        all.remove(name);
    }
    serde_json::to_vec(&all).unwrap_or(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &[u8]) -> Value {
        serde_json::from_slice(text).expect("JSON")
    }

    #[test]
    fn a_key_stands_beside_the_logins_that_are_there() {
        let key = json!({"type": "api_key", "key": "k3y"});
        for nothing in [None, Some(&b""[..]), Some(b"[]"), Some(b"{\"half\":")] {
            assert_eq!(parsed(&with_key(nothing, "groq", "k3y")), json!({"groq": key}));
        }
        let auth = "\u{FEFF}{\"groq\": {\"type\": \"oauth\"}, \"x\": {\"type\": \"api_key\"}}";
        let expected = json!({"groq": key, "x": {"type": "api_key"}});
        assert_eq!(parsed(&with_key(Some(auth.as_bytes()), "groq", "k3y")), expected);
        assert!(names(br#"{"groq":{}}"#, "groq") && !names(br#"{"groq-2":"groq s"}"#, "groq"));
        assert!(is_plain_key("sk-a!b") && !is_plain_key("!ls") && !is_plain_key("a$HOME"));
        assert!(is_object(auth.as_bytes()) && !is_object(b"{\"half\":"));
    }

    #[test]
    fn settings_keep_all_but_extensions() {
        let settings = json!({"theme": "dark", "extensions": ["x"], "packages": ["npm:y"]});
        let without = without_extensions(settings.to_string().into_bytes());
        assert_eq!(parsed(&without), json!({"theme": "dark"}));
        assert_eq!(without_extensions(b"{\"half\":".to_vec()), b"{\"half\":");
    }
}
