//! Query parameters, decoded.
//!
//! Names and values are percent-decoded and `+` is a blank, as in forms. What always holds: any bytes parse
//! or are refused, the number of parameters is bounded, and nothing is copied that needed no decoding.

use percent_encoding::percent_decode;
use std::borrow::Cow;

/// Parameters of one request at most.
pub(crate) const QUERY_PARAMETERS_MAX: usize = 64;

/// The query string cannot be read: bad encoding or too many parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedQuery;

/// The parameters of a request in the order sent.
#[derive(Clone, Debug, Default)]
pub struct QueryParameters<'a> {
    pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// A bit for each pair that was sent without `=`.
    bare: u64,
}

const _: () = assert!(QUERY_PARAMETERS_MAX <= u64::BITS as usize);

impl<'a> QueryParameters<'a> {
    /// Decodes what follows the question mark.
    pub fn parse(query: Option<&'a str>) -> Result<Self, MalformedQuery> {
        let (mut pairs, mut bare) = (Vec::new(), 0);
        for part in query.unwrap_or_default().split('&') {
            if part.is_empty() {
                continue;
            }
            if pairs.len() == QUERY_PARAMETERS_MAX {
                return Err(MalformedQuery);
            }
            let (name, value) = part.split_once('=').unwrap_or_else(|| {
                bare |= 1 << pairs.len();
                (part, "")
            });
            pairs.push((decode(name)?, decode(value)?));
        }
        Ok(QueryParameters { pairs, bare })
    }

    /// The same with each parameter that was sent without `=` as the value of a parameter without name, as
    /// one client signs them; `None`: there is none.
    pub(crate) fn with_bare_as_values(&self) -> Option<Self> {
        if self.bare == 0 {
            return None;
        }
        let swap = |(index, pair): (usize, &(Cow<'a, str>, Cow<'a, str>))| match self.bare >> index & 1 {
            1 => (Cow::Borrowed(""), pair.0.clone()),
            _ => pair.clone(),
        };
        Some(QueryParameters { pairs: self.pairs.iter().enumerate().map(swap).collect(), bare: 0 })
    }

    /// The first value of that name, ignoring the name's case.
    pub fn find(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_ref())
    }

    /// How many parameters have that name, ignoring its case.
    pub fn count(&self, name: &str) -> usize {
        self.pairs.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name)).count()
    }

    /// The parts of a parameter that is a list, wherever it was sent.
    pub(crate) fn list(&self, name: &str) -> impl Iterator<Item = &str> {
        let lists = self.pairs.iter().filter(move |(own, _)| own.eq_ignore_ascii_case(name));
        lists.flat_map(|(_, list)| list.split(',')).map(str::trim).filter(|part| !part.is_empty())
    }

    /// All parameters in the order sent.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_ref(), value.as_ref()))
    }
}

fn decode(text: &str) -> Result<Cow<'_, str>, MalformedQuery> {
    if !text.contains('+') {
        return percent_decode(text.as_bytes()).decode_utf8().map_err(|_| MalformedQuery);
    }
    let blanks = text.replace('+', " ");
    let decoded = percent_decode(blanks.as_bytes()).decode_utf8().map_err(|_| MalformedQuery)?;
    Ok(Cow::Owned(decoded.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_decoded() {
        let query =
            QueryParameters::parse(Some("$select=S%2CI&a+b=c+d%2B&flag&&X=1&x=2")).expect("well formed");
        assert_eq!(query.find("$select"), Some("S,I"));
        assert_eq!(query.find("a b"), Some("c d+"));
        assert_eq!(query.find("flag"), Some(""));
        assert_eq!(query.find("x"), Some("1"));
        assert_eq!(query.iter().count(), 5);
        assert_eq!(query.list("$Select").collect::<Vec<_>>(), ["S", "I"]);
        let swapped = query.with_bare_as_values().expect("one without `=`");
        assert_eq!(
            (swapped.find(""), swapped.find("flag"), swapped.find("x")),
            (Some("flag"), None, Some("1"))
        );
        assert!(swapped.with_bare_as_values().is_none());
        assert!(QueryParameters::parse(Some("a=%ff")).is_err());
        assert!(QueryParameters::parse(Some(&"a&".repeat(QUERY_PARAMETERS_MAX + 1))).is_err());
    }

    proptest! {
        #[test]
        fn any_text_parses_or_is_refused(text in any::<String>()) {
            if let Ok(query) = QueryParameters::parse(Some(&text)) {
                let _ = query.find("$filter");
            }
        }
    }
}
