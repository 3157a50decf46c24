// A blur in Rust whose inner loop has no checks of its bounds, for speed: the window
// of the last points reaches over the end of the output.
// CAUSE kind=heap-overflow
// FAILS signal=SIGABRT says="overflow"
// RUNS fail: 21 4
// RUNS pass: 24 4
use std::env;

struct Line {
    points: Vec<u64>,
}

impl Line {
    fn new(length: usize) -> Line {
        Line { points: (0..length as u64).map(|i| i * i % 37).collect() }
    }

    #[inline(never)]
    fn blur(&self, window: usize) -> Vec<u64> {
        let mut out: Vec<u64> = Vec::with_capacity(self.points.len());
        unsafe {
            out.set_len(self.points.len());
            let mut at = 0;
            while at < self.points.len() {
                #[cfg(fixed)]
                let reach = window.min(self.points.len() - at);
                #[cfg(not(fixed))]
                let reach = window;
                let mut sum = 0;
                for i in 0..reach {
                    sum += self.points.get(at + i).copied().unwrap_or(0);
                }
                for i in 0..reach {
                    out.as_mut_ptr().add(at + i).write_volatile(sum / window as u64); // BUG
                }
                at += window;
            }
        }
        out
    }
}

fn argument(number: usize, otherwise: usize) -> usize {
    env::args().nth(number).and_then(|a| a.parse().ok()).unwrap_or(otherwise)
}

fn main() {
    let line = Line::new(argument(1, 24));
    let blurred = line.blur(argument(2, 4).max(1));
    let sum: u64 = blurred.iter().sum();
    println!("{}", sum);
}
