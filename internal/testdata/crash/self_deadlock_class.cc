// A method locks a mutex that its caller holds, by a class around the mutex.
// FLAGS: -pthread
// HANG: the one thread waits for itself
#include <pthread.h>

namespace {

class Mutex {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

public:
    void lock() { pthread_mutex_lock(&mutex); }
    void unlock() { pthread_mutex_unlock(&mutex); }
};

class Account {
    Mutex mutex;
    long amount = 0;

public:
    __attribute__((noinline)) long cancel()
    {
#ifndef FIXED
        // WANT: deadlock:@LINE+1
        mutex.lock();
#endif
        amount = 0;
#ifndef FIXED
        mutex.unlock();
#endif
        return amount;
    }
    __attribute__((noinline)) long add(long n)
    {
        mutex.lock();
        amount += n;
        long left = amount < 0 ? cancel() : amount;
        mutex.unlock();
        return left;
    }
};

Account account;

} // namespace

int main() { return account.add(-2) != 0; }
