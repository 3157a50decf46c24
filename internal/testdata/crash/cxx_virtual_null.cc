// A virtual call on an object that is not there.
struct Animal {
    virtual int legs() const { return 4; }
    virtual ~Animal() {}
};
struct Bird : Animal {
    int legs() const override { return 2; }
};

static Animal *volatile pet;

__attribute__((noinline, noipa)) static int count_legs(const Animal *a)
{
    // WANT: null-pointer read:@LINE+1
    return a->legs();
}

int main()
{
#ifdef FIXED
    pet = new Bird;
#endif
    return count_legs(pet) != 2;
}
