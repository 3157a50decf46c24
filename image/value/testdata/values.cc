// Variables of the C++ language and of its standard library.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shop {
enum class State : std::uint8_t { open = 1, closed = 2 };
struct Base {
    virtual ~Base() = default;
    int id = 3;
};
struct Named {
    std::string name = "widget";
};
struct Item : Base, Named {
    State state = State::closed;
    double price = 9.75;
    std::vector<int> sizes{1, 2, 3};
    Item *self = this;
};
template <typename T> struct Pair {
    T first, second;
};
}

static int *volatile nowhere;

[[gnu::noinline]] void crash(int value) { *nowhere = value; }

[[gnu::noinline]] int inspect(shop::Item &item, const std::string &title, int number) {
    std::string brief = "short";
    std::string longer = title + " and a good deal more than fits into fifteen bytes";
    std::string_view view(longer);
    view = view.substr(0, 9);
    std::vector<std::string> words{"one", "two", longer};
    std::vector<double> numbers(100, 1.5);
    std::vector<int> none;
    auto owned = std::make_unique<shop::Item>();
    auto shared = std::make_shared<int>(number);
    auto second = shared;
    std::weak_ptr<int> weak = shared;
    std::optional<int> some = number;
    std::optional<int> nothing;
    std::map<int, int> tree{{1, 2}, {3, 4}};
    std::unordered_map<int, int> table{{1, 2}};
    shop::Pair<long> pair{number, -number};
    const int &alias = item.id;
    int shop::Item::*member = &shop::Item::id;
    crash(number);
    return brief.size() + longer.size() + view.size() + words.size() + numbers.size() + none.size() + owned->id + *shared +
        *second + weak.expired() + *some + nothing.has_value() + tree.size() + table.size() + pair.first + alias + item.*member;
}

int main(int argc, char **) {
    shop::Item item;
    return inspect(item, "a title", argc + 4);
}
