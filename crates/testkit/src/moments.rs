//! Moments at which something happens to a process, at random and by a seed.

use std::fmt;
use std::thread;
use std::time::Duration;

/// Chooses moments. The same seed chooses the same ones; what a process does in them is another
/// matter.
#[derive(Debug)]
pub struct Moments {
    seed: u64,
    random: fastrand::Rng,
}

impl Moments {
    /// By the seed in the environment variable `MOMENTS_SEED`, or a fresh one. Whoever uses it says
    /// which it was when something goes wrong: its text names it.
    pub fn new() -> Self {
        let wanted = std::env::var("MOMENTS_SEED").ok();
        let seed = wanted
            .and_then(|seed| seed.parse().ok())
            .unwrap_or_else(|| fastrand::u64(..));
        Self {
            seed,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// One of `n` choices, counted from 0.
    pub fn choose(&mut self, n: usize) -> usize {
        self.random.usize(..n)
    }

    /// Lets a while pass, anything up to `longest`. Never a way to wait for something: when the
    /// moment itself is what a test is about.
    #[expect(
        clippy::disallowed_methods,
        reason = "a random moment is the subject, not a condition"
    )]
    pub fn pass(&mut self, longest: Duration) {
        thread::sleep(longest.mul_f64(self.random.f64()));
    }
}

impl Default for Moments {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Moments {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "MOMENTS_SEED={}", self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_chooses_the_same_again() {
        let chosen = |seed| {
            let mut moments = Moments {
                seed,
                random: fastrand::Rng::with_seed(seed),
            };
            (0..20).map(|_| moments.choose(1_000)).collect::<Vec<_>>()
        };

        assert_eq!(chosen(7), chosen(7));
        assert_ne!(chosen(7), chosen(8));
    }
}
