#include "comm/start/secret.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>
#include <vector>

#include "base/temporary_folder.h"
#include "comm/error_case.h"

namespace bloomery {
namespace {

TEST(Secret, TextAndBack) {
  const Secret secret = random_secret();
  EXPECT_EQ(secret_text(secret).size(), 32);
  EXPECT_TRUE(same_secret(secret_from(secret_text(secret)), secret));
  EXPECT_FALSE(same_secret(random_secret(), secret));
  for (const char* const text :
       {"", "12", "0123456789abcdef0123456789abcdeg", "a word of 32 letters"}) {
    EXPECT_TRUE(contains(error_of([&] { secret_from(text); }), "openssl rand -hex 16")) << text;
  }
}

TEST(Secret, RanksOfAStartShareItAndNobodyElse) {
  const TemporaryFolder folder;
  const std::filesystem::path own = folder.path() / "own";
  std::vector<Secret> secrets(8);
  std::vector<std::thread> ranks;
  for (Secret& secret : secrets) {
    ranks.emplace_back([&] { secret = shared_secret(own, 29500); });
  }
  for (std::thread& rank : ranks) {
    rank.join();
  }
  for (const Secret& secret : secrets) {
    EXPECT_EQ(secret, secrets[0]);
  }
  struct stat facts {};
  ASSERT_EQ(stat((own / "start-29500").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(own), {}), 1);  // nothing temporary
  EXPECT_NE(shared_secret(own, 29501), secrets[0]);
  forget_secret(own, 29500);
  EXPECT_NE(shared_secret(own, 29500), secrets[0]);
}

TEST(Secret, WhatOthersMayReadIsRefused) {
  const TemporaryFolder folder;
  const std::filesystem::path own = folder.path() / "own";
  shared_secret(own, 1);
  chmod((own / "start-1").c_str(), 0644);
  EXPECT_TRUE(contains(error_of([&] { shared_secret(own, 1); }), "others may read or write it"));
  chmod(own.c_str(), 0777);
  EXPECT_TRUE(contains(error_of([&] { shared_secret(own, 2); }), "others may read or write it"));
  EXPECT_TRUE(contains(error_of([&] { shared_secret("/proc/none", 1); }), "BLOOMERY_SECRET"));
}

}  // namespace
}  // namespace bloomery
