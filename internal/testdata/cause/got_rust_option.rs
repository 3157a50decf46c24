// The first seat that is free, looked for without a check whether there is one.
// CAUSE kind=bad-value variable="*"
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: 2 3
// RUNS pass: 2 1
use std::env;

#[repr(C)]
struct Seat {
    row: u64,
    taken: bool,
}

#[inline(never)]
fn first_free(seats: &mut [Seat]) -> *mut Seat {
    for seat in seats.iter_mut() { // BUG 1
        if !seat.taken {
            return seat;
        }
    }
    std::ptr::null_mut() // BUG
}

#[inline(never)]
fn take(seats: &mut [Seat]) -> u64 {
    let seat = first_free(seats);
    #[cfg(fixed)]
    if seat.is_null() {
        return 0;
    }
    unsafe {
        std::ptr::addr_of_mut!((*seat).taken).write_volatile(true);
        std::ptr::addr_of!((*seat).row).read_volatile()
    }
}

fn argument(number: usize) -> u64 {
    env::args().nth(number).and_then(|a| a.parse().ok()).unwrap_or(2)
}

fn main() {
    let mut seats: Vec<Seat> = (0..argument(1)).map(|row| Seat { row, taken: false }).collect();
    let mut sum = 0;
    for _ in 0..argument(2) {
        sum += take(&mut seats);
    }
    println!("{}", sum);
}
