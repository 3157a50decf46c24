// A loop over structures, one of which has an enum with data.
struct Item { key: u32, weight: f64, next: Option<Box<Item>> }
#[inline(never)]
fn total(items: &Vec<Item>, by: u64) -> f64 {
    let mut sum = 0.0;
    for item in items {
        sum += item.weight * by as f64;
    }
    sum
}
fn main() {
    let items = vec![Item { key: 1, weight: 2.5, next: None }, Item { key: 2, weight: 4.5, next: None }];
    let s = total(&items, 3);
    if s > 1.0 { std::process::abort(); }
    println!("{}", items[0].key);
    if let Some(n) = &items[0].next { println!("{}", n.key); }
}
