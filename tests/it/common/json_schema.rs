//! Whether a value keeps to a JSON Schema: the keywords that the schemas of the Model Context
//! Protocol use. One that is not known here fails the test, so none is passed over.

use serde_json::{Map, Value};

/// What says something about a schema and nothing about a value; formats are not checked.
const SILENT: &[&str] =
    &["$schema", "description", "title", "format", "default", "$defs", "definitions"];

/// Checks a value against a schema, whose references lead into `root`.
/// Errors: what does not fit, and where.
pub fn check(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    at(root, schema, value, &mut String::from("$"))
}

fn at(root: &Value, schema: &Value, value: &Value, path: &mut String) -> Result<(), String> {
    let Some(keywords) = schema.as_object() else {
        return if schema == false { Err(format!("{path}: nothing fits here")) } else { Ok(()) };
    };
    for (keyword, given) in keywords {
        let fits = match keyword.as_str() {
            "$ref" => {
                let target = given.as_str().and_then(|to| to.strip_prefix('#')).expect("a pointer");
                let target = root.pointer(target).expect("the target of a reference");
                at(root, target, value, path)?;
                true
            }
            "type" => is_of(given, value),
            "const" => value == given,
            "enum" => list(given).contains(value),
            "anyOf" => list(given).iter().any(|one| at(root, one, value, path).is_ok()),
            "allOf" => {
                for one in list(given) {
                    at(root, one, value, path)?;
                }
                true
            }
            "required" => list(given)
                .iter()
                .all(|name| name.as_str().is_some_and(|name| value.get(name).is_some())),
            "minimum" => value.as_f64().is_none_or(|own| Some(own) >= given.as_f64()),
            "maximum" => value.as_f64().is_none_or(|own| Some(own) <= given.as_f64()),
            "maxItems" => {
                value.as_array().is_none_or(|all| Some(all.len() as u64) <= given.as_u64())
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    below(root, given, item, path, &index.to_string())?;
                }
                true
            }
            "properties" => {
                for (name, schema) in given.as_object().expect("properties") {
                    if let Some(field) = value.get(name) {
                        below(root, schema, field, path, name)?;
                    }
                }
                true
            }
            "additionalProperties" => {
                for (name, field) in others(keywords, value) {
                    below(root, given, field, path, name)?;
                }
                true
            }
            silent if SILENT.contains(&silent) => true,
            unknown => panic!("the keyword {unknown} is not known here"),
        };
        if !fits {
            let shown: String = value.to_string().chars().take(300).collect();
            return Err(format!("{path}: {keyword} is {given}, but there is {shown}"));
        }
    }
    Ok(())
}

/// The same of what stands under a name or an index.
fn below(
    root: &Value,
    schema: &Value,
    value: &Value,
    path: &mut String,
    name: &str,
) -> Result<(), String> {
    let length = path.len();
    path.push('.');
    path.push_str(name);
    let outcome = at(root, schema, value, path);
    path.truncate(length);
    outcome
}

fn list(given: &Value) -> &[Value] {
    given.as_array().expect("a list of schemas, names or values")
}

/// The fields that `properties` beside it says nothing of.
fn others<'v>(
    keywords: &Map<String, Value>,
    value: &'v Value,
) -> impl Iterator<Item = (&'v String, &'v Value)> {
    let known = keywords.get("properties").cloned().unwrap_or_default();
    let fields = value.as_object().into_iter().flatten();
    fields.filter(move |(name, _)| known.get(name.as_str()).is_none())
}

/// Whether a value is of a type, or of one of a list.
fn is_of(named: &Value, value: &Value) -> bool {
    match named.as_str() {
        None => list(named).iter().any(|one| is_of(one, value)),
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("number") => value.is_number(),
        Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        Some(other) => panic!("the type {other} is not known here"),
    }
}
