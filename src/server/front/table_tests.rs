//! The table of methods against what the methods really take.

use super::{all, check_params};
use crate::limits::MAX_PARAMS;
use crate::wire::Kind;

/// A value that fits a kind; of an object, one with all its fields.
fn sample(kind: Kind) -> String {
    match kind {
        Kind::Text | Kind::NonEmptyText | Kind::Label | Kind::Chars => "\"x\"".to_owned(),
        Kind::Integer | Kind::Session => "1".to_owned(),
        Kind::Number => "1.5".to_owned(),
        Kind::Bool => "true".to_owned(),
        Kind::Choice(words) => {
            let plain = ["none", "pipe", "wake"].into_iter().find(|word| words.contains(word));
            format!("\"{}\"", plain.unwrap_or(words[0]))
        }
        Kind::Env => r#"{"A":"1","B":null}"#.to_owned(),
        Kind::Id => "null".to_owned(),
        Kind::Signal => "15".to_owned(),
        Kind::Data => r#"{"base64":"AA=="}"#.to_owned(),
        Kind::Words => r#"["x"]"#.to_owned(),
        Kind::Strings => "\"x\"".to_owned(),
        Kind::Port => "0".to_owned(),
        Kind::Statuses => "[200,299]".to_owned(),
        Kind::InputKind => "true".to_owned(),
        Kind::Sessions => "[1]".to_owned(),
        Kind::Object(table) => {
            let fields: Vec<_> = table.iter().map(|one| (one.name, sample(one.kind))).collect();
            object(&fields)
        }
    }
}

/// A value that fits no kind at all.
const MISFIT: &str = "[[]]";

fn object(fields: &[(&str, String)]) -> String {
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

/// rule: architecture.md, The floors: A method is one file plus one row; `--describe` prints the
///   table as JSON Schema
#[test]
fn each_methods_struct_takes_what_its_table_lists() {
    for method in all() {
        assert!(method.params.len() < MAX_PARAMS, "{}", method.name);
        let required: Vec<(&str, String)> = method
            .params
            .iter()
            .filter(|param| param.required)
            .map(|param| (param.name, sample(param.kind)))
            .collect();
        let check = |fields: &[(&str, String)]| {
            let raw = object(fields);
            if let Err(error) = check_params(method.name, &raw) {
                // What a method itself refuses names its param; what only the struct refuses
                // means that table and struct disagree.
                assert_ne!(
                    error.data["param"], "params",
                    "{} {raw}: {}",
                    method.name, error.message
                );
            }
        };
        check(&required);
        for param in method.params {
            let mut fields: Vec<_> =
                required.iter().filter(|(name, _)| *name != param.name).cloned().collect();
            fields.push((param.name, sample(param.kind)));
            check(&fields);
            fields.pop();
            fields.push((param.name, MISFIT.to_owned()));
            let error = check_params(method.name, &object(&fields)).expect_err("a misfit");
            assert_eq!(error.code, -32602);
            assert_eq!(error.data["param"], param.name, "{}", method.name);
            // The value is quoted, unless it is a secret.
            let secret = matches!(param.name, "api_key" | "secret");
            assert_eq!(error.message.contains(MISFIT), !secret, "{}", error.message);
            fields.pop();
            if param.required {
                let error = check_params(method.name, &object(&fields)).expect_err("missing");
                assert_eq!(error.data["param"], param.name, "{}", method.name);
            }
            fields.push((param.name, sample(param.kind)));
            fields.push((param.name, sample(param.kind)));
            let error = check_params(method.name, &object(&fields)).expect_err("twice");
            assert_eq!(error.data["param"], param.name, "{}", method.name);
        }
        // All at once: whatever is refused now is refused by the method, never by the struct.
        let every: Vec<_> = method.params.iter().map(|one| (one.name, sample(one.kind))).collect();
        check(&every);
        let mut unknown = required.clone();
        unknown.push(("no_such_param", "1".to_owned()));
        let error = check_params(method.name, &object(&unknown)).expect_err("unknown");
        assert_eq!(error.data["param"], "no_such_param", "{}", method.name);
    }
}
