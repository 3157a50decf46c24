// A Rust program with threads, panics and many small objects.
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{mpsc, Arc, Mutex};
use std::thread;

fn main() {
    let total = Arc::new(Mutex::new(BTreeMap::new()));
    let (send, receive) = mpsc::channel::<Vec<String>>();
    let threads: Vec<_> = (0..4)
        .map(|t| {
            let (total, send) = (total.clone(), send.clone());
            thread::spawn(move || {
                let mut map: HashMap<String, Vec<u64>> = HashMap::new();
                for i in 0..20000u64 {
                    map.entry(format!("key {}", i % 701)).or_default().push(i * t);
                }
                let sum: u64 = map.values().flatten().sum();
                total.lock().unwrap().insert(t, sum);
                send.send(map.into_keys().collect()).unwrap(); // freed by the receiver
            })
        })
        .collect();
    drop(send);
    println!("{}", receive.iter().map(|v| v.len()).sum::<usize>());
    threads.into_iter().for_each(|t| t.join().unwrap());
    println!("{:?}", total.lock().unwrap());

    std::panic::set_hook(Box::new(|_| {}));
    let caught = (0..200)
        .filter(|&i| std::panic::catch_unwind(move || Box::new([0u8; 100])[100 - i % 3 + 1 - i % 2]).is_err())
        .count();
    println!("{caught}");
    let mut queue: VecDeque<Box<dyn Fn(u32) -> u32>> = VecDeque::new();
    for i in 0..30000u32 {
        let kept = vec![i; (i % 50) as usize];
        queue.push_back(Box::new(move |x| x.wrapping_add(kept.iter().sum())));
        if queue.len() > 1000 {
            queue.pop_front();
        }
    }
    println!("{}", queue.iter().fold(0, |x, f| f(x)));
    let mut zeroed = vec![0u8; 10_000_000];
    zeroed.resize(20_000_000, 1);
    zeroed.shrink_to_fit();
    println!("{}", zeroed.iter().map(|&b| b as u64).sum::<u64>());
    let child = std::process::Command::new("echo").arg("child").output().unwrap();
    print!("{}", String::from_utf8_lossy(&child.stdout));
}
