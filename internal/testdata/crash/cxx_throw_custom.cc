// An exception of the program's own class, thrown in a thread.
// FLAGS: -pthread
#include <exception>
#include <thread>

namespace store {
struct DiskFull : std::exception {
    int left = 12;
    const char *what() const noexcept override { return "the disk is full"; }
};

__attribute__((noinline, noipa)) static void append(int bytes)
{
    if (bytes > 12)
        // WANT: cxx-terminate:@LINE+1
        throw DiskFull();
}
} // namespace store

int main()
{
#ifdef FIXED
    int bytes = 1;
#else
    int bytes = 100;
#endif
    std::thread thread(store::append, bytes);
    thread.join();
    return 0;
}
