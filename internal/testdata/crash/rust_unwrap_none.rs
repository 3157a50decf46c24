// An Option that holds nothing is unwrapped.
// FLAGS: -C panic=abort
use std::env;

#[inline(never)]
fn port(text: Option<String>) -> usize {
    // WANT: rust-panic:@LINE+1
    text.unwrap().len()
}

fn main() {
    let name = if cfg!(fixed) { Some(String::from("80")) } else { env::var("NO_SUCH_VARIABLE").ok() };
    std::process::exit((port(name) != 2) as i32);
}
