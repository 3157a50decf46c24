// A base class's destructor calls what only derived classes have.
struct Shape {
    virtual int area() const = 0;
    __attribute__((noinline, noipa)) int describe() const
    {
        // WANT: cxx-terminate:@LINE+1
        return area() + 1;
    }
    virtual ~Shape()
    {
#ifndef FIXED
        describe();
#endif
    }
};

struct Square : Shape {
    int side = 3;
    int area() const override { return side * side; }
    ~Square() override { side = 0; }
};

__attribute__((noinline, noipa)) static Shape *make() { return new Square; }

int main()
{
    Shape *s = make();
    int n = s->describe();
    delete s;
    return n != 10;
}
