//! JSON looked at one level at a time: the fields of an object and the items of an array, each
//! with its own text. No tree is built, so that what nobody asks for costs nothing.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::limits::MAX_PARAMS;

/// The name of a field: borrowed from the text unless an escape is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Name<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        from.deserialize_str(Text)
    }
}

/// The fields of an object in the order given, with their JSON texts. No more are kept than it
/// takes to find one that is unknown or given twice: a line of a million costs no memory.
#[derive(Debug)]
pub struct Fields<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some((name, value)) = map.next_entry::<Name<'de>, &RawValue>()? {
                    if fields.len() < MAX_PARAMS {
                        fields.push((name.0, value));
                    }
                }
                Ok(Fields(fields))
            }
        }
        from.deserialize_map(InOrder)
    }
}

impl<'a> Fields<'a> {
    /// The fields of the object that `text` is; the parser's complaint if it is none.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The fields of a value; none if it is no object.
    pub fn of(value: Option<&'a RawValue>) -> Self {
        // The parser would quote all of a long string in its complaint.
        let value = value.filter(|value| value.get().starts_with('{'));
        value.and_then(|value| Self::parse(value.get()).ok()).unwrap_or(Self(Vec::new()))
    }

    /// The JSON text of a field; of one that is given twice the last, as JSON.parse takes it.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// Whether a field is there and is true.
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.get() == "true")
    }
}

/// Hands out the items of an array in order, as long as `take` says that it wants more; none if the
/// value is no array. Gives how many bytes of the array follow the item at which `take` had enough,
/// 0 if it never had: they are not looked at.
pub fn each_item<'a>(value: &'a RawValue, take: &mut dyn FnMut(&'a RawValue) -> bool) -> usize {
    struct Items<'t, 'a>(&'t mut dyn FnMut(&'a RawValue) -> bool, &'t mut Option<&'a str>);
    impl<'de> Visitor<'de> for Items<'_, 'de> {
        type Value = ();
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
            while let Some(item) = items.next_element::<&RawValue>()? {
                if !(self.0)(item) {
                    *self.1 = Some(item.get());
                    return Err(A::Error::custom("enough"));
                }
            }
            Ok(())
        }
    }
    let text = value.get();
    if !text.starts_with('[') {
        return 0;
    }
    let mut last = None;
    // What is raw was parsed: there is no fault in it but that of having enough.
    let _ = serde_json::Deserializer::from_str(text).deserialize_seq(Items(take, &mut last));
    last.map_or(0, |item| {
        let begins_at = item.as_ptr().addr() - text.as_ptr().addr();
        text.len() - begins_at - item.len()
    })
}
