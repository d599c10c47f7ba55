//! Which types of events a subscription asked for (§5.3.1.7).

use aaep_types::EventKind;

/// A literal type name, or a prefix before a trailing `*`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Pattern {
    Literal(Box<str>),
    Prefix(Box<str>),
}

impl Pattern {
    fn new(text: &str) -> Self {
        match text.strip_suffix('*') {
            Some(prefix) => Pattern::Prefix(prefix.into()),
            None => Pattern::Literal(text.into()),
        }
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Pattern::Literal(literal) => **literal == *name,
            Pattern::Prefix(prefix) => name.starts_with(&**prefix),
        }
    }
}

/// What is wanted and what is not; what is not wanted wins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Filter {
    include: Vec<Pattern>,
    exclude: Vec<Pattern>,
    /// One bit for each core type, settled beforehand: most events ask no more than this.
    core: u16,
}

impl Filter {
    /// A filter of patterns: literal names, or prefixes before a trailing `*`.
    pub fn new<'p>(
        include: impl IntoIterator<Item = &'p str>,
        exclude: impl IntoIterator<Item = &'p str>,
    ) -> Self {
        let include: Vec<_> = include.into_iter().map(Pattern::new).collect();
        let exclude: Vec<_> = exclude.into_iter().map(Pattern::new).collect();
        let mut filter = Self { include, exclude, core: 0 };
        for (bit, kind) in EventKind::ALL.into_iter().enumerate() {
            // D23: the three spellings of a core type mean the same.
            let spellings = kind.spellings();
            let any = |list: &[Pattern]| {
                spellings.iter().any(|name| list.iter().any(|pattern| pattern.matches(name)))
            };
            if any(&filter.include) && !any(&filter.exclude) {
                filter.core |= 1 << bit;
            }
        }
        filter
    }

    /// Whether events of this type are wanted.
    ///
    /// ```
    /// use aaep_shaping::Filter;
    /// let filter = Filter::new(["aaep:agent.*"], ["aaep:agent.progress.updated"]);
    /// assert!(filter.admits("aaep:agent.tool.invoked"));
    /// assert!(!filter.admits("aaep:agent.progress.updated"));
    /// assert!(!filter.admits("medai:patient.consulted"));
    /// ```
    pub fn admits(&self, type_name: &str) -> bool {
        // enforces: H8
        match EventKind::parse(type_name) {
            Some(kind) => self.admits_kind(kind),
            None => {
                let any = |list: &[Pattern]| list.iter().any(|pattern| pattern.matches(type_name));
                any(&self.include) && !any(&self.exclude)
            }
        }
    }

    /// The same for a core type.
    pub fn admits_kind(&self, kind: EventKind) -> bool {
        self.core & (1 << kind as u16) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: H8
    #[test]
    fn exclude_beats_include_and_only_a_trailing_star_is_a_wildcard() {
        let filter =
            Filter::new(["aaep:agent.*", "x:seen"], ["aaep:agent.session.*", "aaep:*.changed"]);
        assert!(filter.admits("aaep:agent.state.changed"), "a star in the middle means itself");
        assert!(!filter.admits("aaep:agent.session.started"));
        assert!(filter.admits("x:seen") && !filter.admits("x:seen.twice"));
        assert!(!Filter::new([], []).admits("aaep:agent.state.changed"));
    }

    // covers: H8
    #[test]
    fn the_bit_of_each_core_type_agrees_with_its_patterns() {
        for wanted in EventKind::ALL {
            let filter = Filter::new([wanted.as_str()], []);
            for kind in EventKind::ALL {
                assert_eq!(filter.admits_kind(kind), kind == wanted, "{kind:?}");
                assert_eq!(filter.admits(kind.as_str()), kind == wanted, "{kind:?}");
            }
        }
    }
}
