// A thread waits for signals, another shows the progress; the workers wait for each other's locks.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <vector>
struct Crew {
    std::mutex door;
    std::condition_variable ready, shown;
    int here = 0, left = 0;
    bool ended = false;
};
static Crew crew;
static std::atomic<bool> stopping;
static void worker(int number)
{
    std::unique_lock<std::mutex> in(crew.door);
    if (++crew.here < 4)
        crew.ready.wait(in, [] { return crew.here == 4 && crew.left >= 0; });
    crew.left++; // BUG: the last one wakes nobody
    (void)number;
}
static void progress()
{
    std::unique_lock<std::mutex> in(crew.door);
    while (!crew.ended && !stopping)
        crew.shown.wait_for(in, std::chrono::milliseconds(20));
    if (stopping) {
        fprintf(stderr, "cleaning up\n");
        exit(1);
    }
}
int main()
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    std::thread([set] {
        int got = 0;
        sigwait(&set, &got);
        stopping = true;
    }).detach();
    std::thread show(progress);
    std::vector<std::thread> list;
    for (int i = 0; i < 4; i++)
        list.emplace_back(worker, i);
    for (auto &t : list)
        t.join();
    {
        std::lock_guard<std::mutex> in(crew.door);
        crew.ended = true;
    }
    show.join();
    puts("done");
}
