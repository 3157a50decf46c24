// A Leaf is used as a Branch: no virtual function, but a member past its end.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <memory>
struct Node { virtual ~Node() {} virtual int kind() const { return 0; } int line = 0; };
struct Leaf : Node { int kind() const override { return 1; } int value = 7; };
struct Branch : Node { int kind() const override { return 2; } Node *left = nullptr, *right = nullptr; char pad[64] = {0}; Node **all = nullptr; };
__attribute__((noinline)) int count(Node *n)
{
    Branch *b = static_cast<Branch *>(n);
    return b->left->kind() + b->right->kind();
}
int main(int argc, char **argv)
{
    std::unique_ptr<Node> keep(argc > 2 ? (Node *)new Branch : (Node *)new Leaf);
    printf("%d\n", count(keep.get()));
}
