#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <regex>
#include <thread>
#include <vector>
int main() {
  std::atomic<int> n{0};
  std::vector<std::thread> ts;
  for (int i = 0; i < 8; i++) ts.emplace_back([&] { for (int j = 0; j < 1000; j++) n++; });
  for (auto &t : ts) t.join();
  auto f = std::async(std::launch::async, [] { return std::regex_match("abc123", std::regex("[a-z]+\\d+")); });
  std::ofstream("x.txt") << "x";
  std::filesystem::copy_file("x.txt", "y.txt");
  if (n != 8000 || !f.get() || std::filesystem::file_size("y.txt") != 1) return 1;
  std::cout << "works" << std::endl;
}
