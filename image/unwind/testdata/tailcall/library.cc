// The last call is of a function of a library, and in a method that was inlined.
// GDB: has no address for the call of a method, and so none of the frames
// WANT: abort release* drop* Owner::close* main
#include <cstdlib>
static volatile int counter;

__attribute__((always_inline)) static inline void release(int n)
{
    counter = n;
    free((char *)&counter + n); // an address that malloc did not return
}

__attribute__((noinline)) static void drop(int n)
{
    counter += 2;
    release(n);
}

struct Owner {
    int n;
    __attribute__((noinline)) void close()
    {
        counter += n;
        drop(n * 8);
    }
};

int main(int argc, char **)
{
    Owner o{argc};
    o.close();
    __asm__ volatile("" ::: "memory");
    return counter;
}
