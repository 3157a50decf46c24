// Loads and unloads a plugin many times, from several threads.
#include <cstdio>
#include <dlfcn.h>
#include <pthread.h>
#include <string>
#include <thread>
#include <vector>

int main(int argc, char **argv)
{
	std::vector<char *> gifts;
	long sum = 0;
	std::string path = argv[argc - 1];

	for (int i = 0; i < 300; i++) {
		void *h = dlopen(path.c_str(), i % 2 ? RTLD_NOW : RTLD_LAZY);
		if (!h) {
			puts(dlerror());
			return 1;
		}
		auto plugin = (int (*)(int))dlsym(h, "plugin");
		auto gift = (char *(*)(int))dlsym(h, "gift");
		std::thread([&] { sum += plugin(i); }).join();
		gifts.push_back(gift(i + 1));
		dlsym(h, "no such symbol");
		dlerror();
		dlclose(h);
	}
	for (char *g : gifts)
		delete[] g;
	if (dlopen("/nonexistent.so", RTLD_NOW))
		return 1;
	std::vector<std::thread> all;
	for (int t = 0; t < 4; t++)
		all.emplace_back([&] {
			for (int i = 0; i < 50; i++)
				if (void *h = dlopen(path.c_str(), RTLD_NOW)) {
					((int (*)(int))dlsym(h, "plugin"))(i);
					dlclose(h);
				}
		});
	for (auto &t : all)
		t.join();
	printf("%ld\n", sum);
}
