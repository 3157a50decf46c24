// Rust's own mutexes and condition variables, which call the kernel by
// themselves; with an argument its channels, too.
use std::collections::HashMap;
use std::sync::{mpsc, Arc, Barrier, Condvar, Mutex, Once, RwLock};
use std::thread;

static START: Once = Once::new();

fn main() {
    let channels = std::env::args().count() > 1;
    let shared = Arc::new((Mutex::new(0u64), Condvar::new()));
    let table = Arc::new(RwLock::new(HashMap::new()));
    let barrier = Arc::new(Barrier::new(4));
    let (sender, receiver) = mpsc::channel();
    let threads: Vec<_> = (0..4u64)
        .map(|i| {
            let (shared, table, barrier, sender) = (shared.clone(), table.clone(), barrier.clone(), sender.clone());
            thread::spawn(move || {
                START.call_once(|| println!("started"));
                barrier.wait();
                for k in 0..1000u64 {
                    let mut sum = shared.0.lock().unwrap();
                    *sum += k * i;
                    if k % 50 == 0 {
                        shared.1.notify_all();
                        if channels {
                            sender.send((i, k, format!("{k}"))).unwrap();
                        }
                        table.write().unwrap().insert((i, k), vec![k; 10]);
                    }
                }
            })
        })
        .collect();
    drop(sender);
    let received: Vec<_> = receiver.iter().collect();
    for t in threads {
        t.join().unwrap();
    }
    println!("{} {} {}", shared.0.lock().unwrap(), received.len(), table.read().unwrap().len());
    std::process::abort();
}
