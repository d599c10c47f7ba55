//! Benchmarks by name. Each is one function and one row in [`BENCHES`].

use anyhow::{Result, bail};

struct Bench {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<()>,
}

const BENCHES: &[Bench] = &[
    Bench {
        name: "agent",
        about: "what park, decision and invoke add to the engine's own work, in one process",
        run: |args| cargo_bench("aaep-agent", "consent", args),
    },
    Bench {
        name: "bridges",
        about: "what `aaep hook` adds to a call of a coding agent, with a hub and without one, and what \
                the proxy between an editor and its agent adds to a message; its memory over 100,000",
        run: |args| cargo_bench("aaep-cli", "bridges", args),
    },
    Bench {
        name: "durable",
        about: "confirmations that survive a power cut beside a bare append with fdatasync on the \
                same disk; a million pending requests after a restart; confirmations while a million \
                records are taken out of the journal; erasing a person",
        run: |args| cargo_bench("aaep-hub", "durable", args),
    },
    Bench {
        name: "engine",
        about: "a ledger of a million requests, one event for a thousand subscriptions, and what things \
                cost among few and many others",
        run: |args| {
            cargo_bench("aaep-engine", "ledger", args)?;
            cargo_bench("aaep-engine", "ledger_memory", args)?;
            cargo_bench("aaep-engine", "others", args)?;
            cargo_bench("aaep-shaping", "offer", args)
        },
    },
    Bench {
        name: "hub",
        about: "the hub under load beside a bare axum: fan-out, connections held, confirmations, \
                a stalled subscriber; gRPC beside HTTP",
        run: |args| cargo_bench("aaep-hub", "hub", args),
    },
    Bench {
        name: "issuers",
        about: "what a signed token of an identity provider costs when it is new, and afterwards",
        run: |args| cargo_bench("aaep-hub", "issuers", args),
    },
    Bench {
        name: "packages",
        about: "a confirmation through the Python package and through @aaep/agent, beside the Rust library \
                against the same hub",
        run: crate::typescript::bench,
    },
    Bench {
        name: "page",
        about: "the page in Chromium: its script time for an event at 50 a second, and its heap over \
                100,000 events",
        run: |_| crate::page::bench(),
    },
    Bench {
        name: "listen",
        about: "from an event to its first words in `aaep listen`, beside a bare client; memory over \
                100,000 events",
        run: |args| cargo_bench("aaep-cli", "listen", args),
    },
    Bench {
        name: "tenants",
        about: "a quiet tenant's confirmations while another one does its worst; memory under all of \
                that at once (`memory --minutes 60`)",
        run: |args| cargo_bench("aaep-hub", "tenants", args),
    },
    Bench {
        name: "voices",
        about: "from a request to its first spoken word and to the cells of a braille display, with \
                the real programs; 200 mixed events at 300 words a minute",
        run: |args| cargo_bench("aaep-voice", "voices", args),
    },
    Bench {
        name: "validate",
        about: "validation of single messages beside the jsonschema crate and a bare parse, and \
                `aaep validate` beside the library",
        run: |args| {
            cargo_bench("aaep-types", "validate", args)?;
            cargo_bench("aaep-cli", "validate", args)?;
            cargo_bench("aaep-types", "allocations", args)
        },
    },
];

/// Runs a benchmark that a crate has in its `benches` folder.
fn cargo_bench(package: &str, bench: &str, args: &[String]) -> Result<()> {
    let status = std::process::Command::new("cargo")
        .args(["bench", "--quiet", "--package", package, "--bench", bench, "--"])
        .args(args)
        .status()?;
    if !status.success() {
        bail!("the benchmark {bench} of {package} failed; its own words are above");
    }
    Ok(())
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    match args {
        [] => {
            println!("{}", list());
            Ok(())
        }
        [name, args @ ..] => match BENCHES.iter().find(|bench| bench.name == name) {
            Some(bench) => (bench.run)(args),
            None => bail!("there is no benchmark {name:?}. {}", list()),
        },
    }
}

fn list() -> String {
    let mut text = String::from("Benchmarks:");
    for bench in BENCHES {
        text.push_str(&format!("\n  {}: {}", bench.name, bench.about));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_benchmark_is_refused_with_the_list() {
        let error = run(&["nonsense".to_owned()]).unwrap_err();
        assert!(error.to_string().contains(&list()));
    }
}
