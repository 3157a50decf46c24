// A destructor throws while another exception is in flight.
#include <stdexcept>

struct File {
    ~File() noexcept(false)
    {
#ifndef FIXED
        // WANT: cxx-terminate:@LINE+1..+10
        throw std::runtime_error("cannot close");
#endif
    }
};

__attribute__((noinline, noipa)) static void work()
{
    File file;
    throw std::logic_error("first");
}

int main()
{
    try {
        work();
    } catch (std::exception &) {
    }
}
