// A panic with a formatted message.
// FLAGS: -C panic=abort
#[inline(never)]
fn withdraw(balance: u32, amount: u32) -> u32 {
    if amount > balance {
        // WANT: rust-panic:@LINE+1
        panic!("cannot withdraw {} from {}", amount, balance);
    }
    balance - amount
}

fn main() {
    let amount = if cfg!(fixed) { 5 } else { 50 + std::env::args().count() as u32 };
    std::process::exit((withdraw(10, amount) != 5) as i32);
}
