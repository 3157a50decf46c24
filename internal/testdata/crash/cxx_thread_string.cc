// A std::thread works on values of the standard library.
// FLAGS: -pthread
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

struct Account {
    std::string owner;
    std::vector<int> amounts;
    std::unique_ptr<int> limit;
};

__attribute__((noinline, noipa)) static int over_limit(const Account &account, const std::string &reason)
{
    std::string note = "checked " + reason;
    std::map<int, std::string> names = {{1, "one"}, {2, "two"}};
    // WANT: null-pointer read:@LINE+1
    return account.amounts[0] > *account.limit ? (int)note.size() : (int)names.size();
}

int main()
{
    Account account;
    account.owner = "a name that is too long for the small buffer";
    account.amounts = {10, 20, 30};
#ifdef FIXED
    account.limit.reset(new int(50));
#endif
    int result = 0;
    std::thread thread([&] { result = over_limit(account, "now"); });
    thread.join();
    return result != 2;
}
