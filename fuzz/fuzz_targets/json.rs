//! The scanner accepts what serde_json accepts, except for what it refuses on purpose.
#![no_main]

use aaep_types::json::{JsonFaultKind, Members, pointer_at};
use serde_json::Value;

const DEPTH: usize = 64;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let theirs = serde_json::from_str::<Value>(text);
    match Members::whole(text, DEPTH) {
        Ok(members) => {
            let faults = members.as_ref().map_or(&[][..], |members| members.faults());
            for fault in faults {
                locate(text, fault.offset);
            }
            // Noted faults: what serde_json refuses too (surrogates, numbers), or lets through.
            if members.is_some() && faults.is_empty() {
                let theirs = theirs.expect("sound JSON");
                let members = members.expect("an object");
                if members.repeated().is_none() {
                    let object = theirs.as_object().expect("an object");
                    let names: Vec<&str> = members.iter().map(|m| m.name.as_ref()).collect();
                    assert!(object.keys().map(String::as_str).eq(names));
                    for member in members.iter() {
                        let ours = members.text(&member.name);
                        assert_eq!(ours.as_deref(), object[member.name.as_ref()].as_str());
                    }
                }
            }
        }
        Err(fault) => {
            locate(text, fault.offset);
            if fault.kind != JsonFaultKind::TooDeep {
                assert!(theirs.is_err(), "{:?}", fault);
            }
        }
    }
});

fn locate(text: &str, offset: usize) {
    assert!(offset <= text.len());
    let pointer = pointer_at(text, offset);
    assert!(pointer.is_empty() || pointer.starts_with('/'));
}
