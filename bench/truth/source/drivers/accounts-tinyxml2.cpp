// Threads read documents with TinyXML-2 and move amounts between accounts; an observer of each
// account hears of changes.
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include "tinyxml2.h"

namespace {

constexpr int workers = 3, accounts = 4, moves = 150;

struct Account {
    std::mutex lock;
    long amount = 1000;
    int changes = 0;
    std::string last;
};

struct Summary {
    std::atomic<int> users{workers + 1};
    std::vector<int> elements;
    std::mutex lock;
};

Account account[accounts];
std::atomic<int> moved{0};
std::mutex gate;
std::condition_variable arrived, opened;
int present = 0;
bool open = false;
std::string text;

int elements(const tinyxml2::XMLElement *e)
{
    int n = 1;
    for (auto *c = e->FirstChildElement(); c; c = c->NextSiblingElement())
        n += elements(c);
    return n;
}

void release(Summary *s)
{
    if (s->users.fetch_sub(1) == 1)
        delete s;
}

void change(Account &a, long by, const char *why)
{
    a.amount += by;
    a.last = why;
    a.changes++;
}

void move(int from, int to, long amount)
{
    Account &a = account[from < to ? from : to], &b = account[from < to ? to : from];
    a.lock.lock();
    b.lock.lock();
    change(account[from], -amount, "a payment that was made to another account");
    change(account[to], amount, "a payment that was received");
    b.lock.unlock();
    a.lock.unlock();
    moved.fetch_add(1);
}

void report(Summary *s, int n)
{
    std::lock_guard<std::mutex> guard(s->lock);
    s->elements.push_back(n);
}

void await()
{
    std::unique_lock<std::mutex> hold(gate);
    present++;
    arrived.notify_one();
    while (!open)
        opened.wait(hold);
}

void work(int number, Summary *s)
{
    unsigned random = number + 1;
    tinyxml2::XMLDocument document;
    await();
    document.Parse(text.c_str());
    int n = document.RootElement() ? elements(document.RootElement()) : 0;
    for (int i = 0; i < moves; i++) {
        random = random * 1103515245 + 12345;
        int from = (random >> 16) % accounts;
        move(from, (from + 1 + (random >> 20) % (accounts - 1)) % accounts, n % 7 + 1);
    }
    report(s, n);
    release(s);
}

long total()
{
    long sum = 0;
    for (Account &a : account) {
        std::lock_guard<std::mutex> guard(a.lock);
        sum += a.amount;
        assert(a.changes == 0 || !a.last.empty());
    }
    return sum;
}

}

int main(int argc, char **argv)
{
    FILE *f = fopen(argv[argc - 1], "rb");
    char part[4096];
    size_t n;
    if (!f)
        return 1;
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        text.append(part, n);
    fclose(f);
    Summary *s = new Summary;
    std::vector<std::thread> threads;
    for (int i = 0; i < workers; i++)
        threads.emplace_back(work, i, s);
    {
        std::unique_lock<std::mutex> hold(gate);
        while (present < workers)
            arrived.wait(hold);
        open = true;
        opened.notify_all();
    }
    total();
    for (auto &t : threads)
        t.join();
    assert(s->elements.size() == workers && moved == workers * moves);
    printf("%d elements, %ld in all\n", s->elements[0], total());
    release(s);
    return total() != 1000 * accounts;
}
