// Two objects of static lifetime own one pool; the destructors run at exit.
#include "lib/hide.h"

struct Pool {
    long blocks[12];
};

struct Owner {
    Pool *pool = nullptr;
    ~Owner()
    {
        // WANT: double-free:@LINE+2
        // HEAP: double-free object=96 api=new alloc:@made free:@LINE+1 call:@LINE+1
        delete hide(pool);
        done();
    }
};

static Owner reader, writer;

int main()
{
    writer.pool = hide(new Pool()); // @made
#ifndef FIXED
    reader.pool = writer.pool;
#endif
    return 0;
}
