// A clerk by his number, whom everybody expects to be there.
// CAUSE kind=bad-value variable="*"
// FAILS signal=SIGABRT says="no such clerk"
// RUNS fail: 3 7 5
// RUNS pass: 3 7 3
// FLAGS: -Cpanic=abort
// LEVELS: O0
use std::env;

struct Clerk {
    number: u64,
    entries: u64,
}

#[inline(never)]
fn find(clerks: &[Clerk], number: u64) -> Option<&Clerk> {
    for clerk in clerks { // BUG 2
        if clerk.number == number { // BUG 3
            return Some(clerk);
        }
    }
    None // BUG 1
}

#[inline(never)]
fn entries(clerks: &[Clerk], number: u64) -> u64 {
    #[cfg(fixed)]
    return find(clerks, number).map_or(0, |c| c.entries);
    #[cfg(not(fixed))]
    find(clerks, number).expect("no such clerk").entries
}

fn main() {
    let clerks = vec![Clerk { number: 3, entries: 8 }, Clerk { number: 7, entries: 2 }];
    let mut sum = 0;
    for number in env::args().skip(1) {
        sum += entries(&clerks, number.parse().unwrap_or(0));
    }
    println!("{}", sum);
}
