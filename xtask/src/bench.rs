//! Benchmarks by name. Each is one function and one row in [`BENCHES`].

use anyhow::{Result, bail};

struct Bench {
    name: &'static str,
    about: &'static str,
    run: fn() -> Result<()>,
}

/// None yet: the first, `validate`, measures parsing once there is a parser.
const BENCHES: &[Bench] = &[];

pub(crate) fn run(args: &[String]) -> Result<()> {
    match args {
        [] => {
            println!("{}", list());
            Ok(())
        }
        [name] => match BENCHES.iter().find(|bench| bench.name == name) {
            Some(bench) => (bench.run)(),
            None => bail!("there is no benchmark {name:?}. {}", list()),
        },
        _ => bail!("name one benchmark at a time. {}", list()),
    }
}

fn list() -> String {
    if BENCHES.is_empty() {
        return "There are no benchmarks yet.".to_owned();
    }
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
