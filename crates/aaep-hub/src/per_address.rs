//! PerAddress for what anybody may begin without having been let in: few for one address, and not too many
//! in all.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aaep_engine::{Blame, Refusal};
use aaep_types::rule;

/// How many slots there are, and how the bounds are named.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressBounds {
    pub(crate) all: (usize, &'static str),
    pub(crate) each: (usize, &'static str),
    /// What takes a slot, for people.
    pub(crate) what: &'static str,
    pub(crate) remedy: &'static str,
}

/// Who has taken a slot.
pub(crate) struct PerAddress {
    bounds: AddressBounds,
    taken: Mutex<BTreeMap<IpAddr, usize>>,
}

/// A slot, for as long as this lives.
pub(crate) struct AddressSlot<'p> {
    bounded: &'p PerAddress,
    from: IpAddr,
}

impl Drop for AddressSlot<'_> {
    fn drop(&mut self) {
        let mut taken = self.bounded.lock();
        if let Some(count) = taken.get_mut(&self.from) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.from);
            }
        }
    }
}

impl PerAddress {
    pub(crate) fn new(bounds: AddressBounds) -> Self {
        Self { bounds, taken: Mutex::default() }
    }

    // enforces: I22, I29
    /// Takes a slot for somebody who comes from there, if there is one.
    pub(crate) fn take(&self, from: IpAddr) -> Result<AddressSlot<'_>, Refusal> {
        let from = network_of(from);
        let mut taken = self.lock();
        let (own, all) = (taken.get(&from).copied().unwrap_or_default(), taken.values().sum());
        let AddressBounds { all: most, each, what, remedy } = self.bounds;
        let full = if own >= each.0 {
            Some((each, "from one address"))
        } else {
            (most.0 <= all).then_some((most, "in all"))
        };
        if let Some(((most, name), who)) = full {
            let text = format!("At most {most} {what} at once {who} (limits.{name}). {remedy}");
            return Err(Refusal { blame: Blame::Limit, rule: rule::S5, text });
        }
        *taken.entry(from).or_default() += 1;
        Ok(AddressSlot { bounded: self, from })
    }

    #[cfg(test)]
    pub(crate) fn are_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        // Nothing panics while it is held; whatever is in it is whole.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who has an IPv6 address has a network of them.
pub(crate) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !(u128::MAX >> 64)).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: I22, I29
    #[test]
    fn one_network_has_few_slots_and_the_others_have_some_left() {
        let slots = PerAddress::new(AddressBounds {
            all: (3, "things"),
            each: (2, "things_per_address"),
            what: "things are done",
            remedy: "Wait.",
        });
        let from = |text: &str| text.parse::<IpAddr>().unwrap();
        let own = [slots.take(from("2001:db8::1")), slots.take(from("2001:db8::2"))];
        let refused = |from| slots.take(from).map(drop).unwrap_err().text;
        let text = refused(from("2001:db8::3"));
        assert_eq!(
            text,
            "At most 2 things are done at once from one address (limits.things_per_address). Wait."
        );
        let other = slots.take(from("192.0.2.7")).unwrap();
        assert!(refused(from("192.0.2.8")).contains("in all (limits.things)"));
        drop((own, other));
        assert!(slots.are_empty() && slots.take(from("192.0.2.8")).is_ok());
    }
}
