// A table in Rust that hands out its rows as a slice without a lifetime: it is filled
// anew, which drops the rows, while a caller still has the slice.
// CAUSE kind=use-after-free
// FAILS signal=SIGSEGV says="no address"
// RUNS fail: 4 2
// RUNS pass: 4 9
// FLAGS: -C debug-assertions=off
use std::env;

struct Table {
    rows: Vec<String>,
}

impl Table {
    fn new(count: usize) -> Table {
        Table { rows: (0..count).map(|i| format!("row number {} of the table", i)).collect() }
    }

    #[inline(never)]
    fn rows(&self) -> &'static [String] {
        unsafe { std::slice::from_raw_parts(self.rows.as_ptr(), self.rows.len()) }
    }

    #[inline(never)]
    fn refill(&mut self, count: usize) {
        let rows = (0..count).map(|i| format!("new row number {}", i)).collect();
        self.rows = rows; // BUG 1
    }
}

#[inline(never)]
fn count_old(rows: &[String]) -> usize {
    rows.iter().filter(|r| r.as_bytes()[0] == b'r').count() // BUG 2
}

fn argument(number: usize, otherwise: usize) -> usize {
    env::args().nth(number).and_then(|a| a.parse().ok()).unwrap_or(otherwise)
}

fn main() {
    let mut table = Table::new(argument(1, 4));
    #[allow(unused_mut, unused_assignments)]
    let mut rows = table.rows();
    if argument(2, 9) < 5 {
        table.refill(argument(2, 9));
        #[cfg(fixed)]
        {
            rows = table.rows();
        }
    }
    println!("{}", count_old(rows));
}
