//! The model that was asked, and the one that has answered: pi takes another one for a name that it
//! does not know, and says so nowhere but in the messages of its stream (agent.md, The result).

use std::borrow::Cow;

use crate::limits::AGENT_NAME_BYTES;
use crate::pure::json::fields::Fields;
use crate::pure::json::text::string;

/// What may stand behind the name of a model that is asked: how much it is to think.
const THINKING: [&str; 7] = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];
/// A model of this name is a router: whichever model it hands the question to has been asked.
const ROUTER: &str = "auto";
/// What a provider puts behind the name of a model that is offered for nothing.
const FREE: &str = ":free";
/// What stands behind the name of a model for its newest version.
const LATEST: &str = "-latest";

/// The model that a run is to be answered by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Its provider; empty if that is not known, and then any has been asked.
    pub provider: String,
    /// Its id, as the provider has it, perhaps with a thinking level behind it.
    pub model: String,
    /// The run is ended when another model answers.
    pub strict_model: bool,
}

impl Asked {
    /// The model that a param `provider/id` asks for.
    pub fn of(model: &str, strict_model: bool) -> Self {
        let (provider, id) = model.split_once('/').unwrap_or_default();
        Self { provider: provider.to_owned(), model: id.to_owned(), strict_model }
    }

    /// This, if it is known what was asked.
    pub fn known(&self) -> Option<&Self> {
        (!self.provider.is_empty()).then_some(self)
    }

    /// Whether the message of an answer is one of another model.
    pub fn is_other(&self, answered: &Answered) -> bool {
        let id = without_level(&self.model);
        if self.known().is_none() || id == ROUTER || id.ends_with("/auto") {
            return false;
        }
        let differs = |asked: &str, told: &Option<String>| {
            told.as_ref().is_some_and(|told| !told.eq_ignore_ascii_case(asked))
        };
        let concrete = answered.concrete.as_deref();
        differs(&self.provider, &answered.provider)
            || differs(id, &answered.model)
            || concrete.is_some_and(|told| !is_same_model(id, told))
    }
}

/// What pi tells of the model that a message comes from. Nothing is known of what is None.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// The provider that was asked by pi.
    pub provider: Option<String>,
    /// The model that pi has asked it for.
    model: Option<String>,
    /// The model that the provider says it was.
    concrete: Option<String>,
}

impl Answered {
    /// What the fields of an assistant's message tell.
    pub fn by(message: &Fields<'_>) -> Self {
        let name = |field| {
            let name = string(message.get(field), AGENT_NAME_BYTES).map(Cow::into_owned);
            name.filter(|name| !name.is_empty())
        };
        Self { provider: name("provider"), model: name("model"), concrete: name("responseModel") }
    }

    /// The model, as its provider calls it where that is told.
    pub fn model(&self) -> Option<&str> {
        self.concrete.as_deref().or(self.model.as_deref())
    }
}

/// The id of a model without the thinking level that may stand behind it.
fn without_level(id: &str) -> &str {
    let level = id.rsplit_once(':').filter(|(_, level)| THINKING.contains(level));
    level.map_or(id, |(id, _)| id)
}

/// Whether a provider that says `told` has answered with the model that was asked for: the name may
/// have a vendor before it or lack it, and say which version of the model it was.
pub fn is_same_model(asked: &str, told: &str) -> bool {
    let asked = plain_name(without_level(asked));
    let told = plain_name(told);
    if asked == ROUTER || asked.ends_with("/auto") {
        return true;
    }
    is_version_of(&asked, &told)
        || vendorless(&told, &asked).is_some_and(|told| is_version_of(&asked, told))
        || vendorless(&asked, &told).is_some_and(|asked| is_version_of(asked, &told))
}

/// A name in small letters, without what says nothing of which model it is.
fn plain_name(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let paid = name.strip_suffix(FREE).unwrap_or(&name);
    paid.strip_suffix(LATEST).unwrap_or(paid).to_owned()
}

/// What `name` is without the vendors before it, where it has more of them than `other`.
fn vendorless<'a>(name: &'a str, other: &str) -> Option<&'a str> {
    let parts = |name: &str| name.matches('/').count();
    let more = parts(name).checked_sub(parts(other)).filter(|more| *more > 0)?;
    name.splitn(more + 1, '/').last()
}

/// Whether a name is another one, or that with a version behind it.
fn is_version_of(asked: &str, told: &str) -> bool {
    told.strip_prefix(asked).is_some_and(|rest| rest.is_empty() || is_version(rest))
}

/// Whether this is a date or the number of a version as providers put it behind the name of a
/// model: `-20251001`, `@20251001`, `-2024-08-06`, `-05-20`, `-0613`, `-001`, and `-v2:0` behind
/// one of these. A single digit is none: `-5` makes another model of `claude-sonnet-4`.
fn is_version(rest: &str) -> bool {
    let dated = rest.split_once("-v").filter(|(_, version)| {
        !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
    });
    let Some(digits) = dated.map_or(rest, |(date, _)| date).strip_prefix(['-', '@']) else {
        return false;
    };
    let numeric = digits.split('-').all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    let lengths: Vec<usize> = digits.split('-').map(str::len).collect();
    numeric && matches!(lengths.as_slice(), [3 | 4 | 6 | 8] | [4, 2, 2] | [2, 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names asked for and told, and whether they are of one model.
    const NAMES: [(&str, &str, bool); 25] = [
        ("gpt-4o", "GPT-4o", true),
        ("gpt-4o", "openai/gpt-4o", true),
        ("openai/gpt-4o", "azure/gpt-4o", false),
        ("llama-3.3-70b", "accounts/fireworks/models/llama-3.3-70b", true),
        ("models/gemini-2.5-pro", "gemini-2.5-pro", true),
        ("gpt-4o", "gpt-4o-2024-08-06", true),
        ("openai/gpt-4o", "gpt-4o-2024-08-06", true),
        ("gpt-4o", "gpt-4o-mini", false),
        ("gpt-4", "gpt-4-0613", true),
        ("gpt-4", "gpt-4-32k", false),
        ("gpt-4o-2024-08-06", "gpt-4o-2024-05-13", false),
        ("claude-haiku-4-5", "claude-haiku-4-5-20251001", true),
        ("claude-haiku-4-5", "claude-haiku-4-5@20251001", true),
        ("claude-sonnet-4", "claude-sonnet-4-5-20250929", false),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku-20241022", true),
        ("claude-3-5-haiku", "claude-3-5-haiku-latest", true),
        ("claude-3-5-sonnet", "claude-3-5-sonnet-20241022-v2:0", true),
        ("claude-3-5-sonnet", "claude-3-5-sonnet-v", false),
        ("claude-opus-4-1:high", "claude-opus-4-1-20250805", true),
        ("claude-opus-4-1:odd", "claude-opus-4-1-20250805", false),
        ("gemini-2.5-flash", "gemini-2.5-flash-001", true),
        ("gemini-2.5-flash", "gemini-2.5-flash-05-20", true),
        ("deepseek/deepseek-r1:free", "deepseek/deepseek-r1", true),
        ("deepseek/deepseek-r1:free", "deepseek/deepseek-v3:free", false),
        ("auto", "anthropic/claude-haiku-4.5", true),
    ];

    /// rule: agent.md, The result: The same model: with a vendor more or less, with a
    ///   version more, by a router
    #[test]
    fn names_of_one_model_and_of_others() {
        for (asked, told, same) in NAMES {
            assert_eq!(is_same_model(asked, told), same, "{asked} {told}");
        }
    }

    /// rule: agent.md, The result: Another provider, another id or another concrete
    ///   model is a mismatch
    #[test]
    fn an_answer_of_another_model_is_known_by_each_of_its_names() {
        // Asked; provider, model and responseModel of the message; whether it is another model.
        let table = [
            ("p/m", Some("p"), Some("m"), None, false),
            ("p/m", None, None, None, false),
            ("p/m", Some("P"), Some("M"), Some("m"), false),
            ("p/m", Some("q"), Some("m"), None, true),
            ("p/m", Some("q"), None, None, true),
            ("p/m", Some("p"), Some("n"), None, true),
            ("p/m", Some("p"), Some("m-20250101"), None, true),
            ("p/m", Some("p"), Some("m"), Some("m-20250101"), false),
            ("p/m", Some("p"), Some("m"), Some("n"), true),
            ("p/m:high", Some("p"), Some("m"), None, false),
            ("p/m:free", Some("p"), Some("m:free"), Some("m"), false),
            ("p/v/m", Some("p"), Some("v/m"), Some("m"), false),
            ("p/auto", Some("q"), Some("n"), Some("n"), false),
            ("p/auto:low", Some("q"), Some("n"), None, false),
            ("p/v/auto", Some("q"), Some("n"), None, false),
            ("", Some("q"), Some("n"), None, false),
        ];
        for (asked, provider, model, concrete, other) in table {
            let owned = |name: Option<&str>| name.map(str::to_owned);
            let answered = Answered {
                provider: owned(provider),
                model: owned(model),
                concrete: owned(concrete),
            };
            assert_eq!(Asked::of(asked, true).is_other(&answered), other, "{asked} {answered:?}");
        }
    }
}
