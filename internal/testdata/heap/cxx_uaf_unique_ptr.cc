// A raw pointer is taken from a unique_ptr that is reset in a thread.
// FLAGS: -pthread
#include <memory>
#include <pthread.h>

#include "lib/hide.h"

struct Engine {
    int power = 80;
};

struct Car {
    long number = 1;
    Engine *engine;
    explicit Car(Engine *e) : engine(e) {}
};

static std::unique_ptr<Car> car;

static void *scrap(void *unused)
{
#ifndef FIXED
    car.reset(); // @freed
#endif
    return unused;
}

NOINLINE static int power(const Car *c)
{
    // WANT: use-after-free read:@LINE+1
    return c->engine->power;
}

int main()
{
    static Engine engine;
    car.reset(new Car(&engine)); // @made
    Car *mine = hide(car.get());
    pthread_t t;
    pthread_create(&t, nullptr, scrap, nullptr);
    pthread_join(t, nullptr);
    // HEAP: use-after-free object=16 api=new alloc:@made(main) free:@freed(ended)
    return power(mine) != 80;
}
