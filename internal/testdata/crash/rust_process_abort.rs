// The program gives up by itself, without a panic. Every Rust program has
// frames of std::panicking below its main.
use std::hint::black_box;

#[inline(never)]
fn give_up(code: u32) -> u32 {
    if code > 3 {
        // WANT: abort:@LINE+1
        std::process::abort();
    }
    code
}

fn main() {
    let code = if cfg!(fixed) { 1 } else { 7 };
    black_box(give_up(black_box(code)));
}
