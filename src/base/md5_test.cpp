#include "base/md5.h"

#include <gtest/gtest.h>

namespace bloomery {
namespace {

TEST(Md5, VectorsOfTheStandard) {
  EXPECT_EQ(md5_hex(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5_hex("a"), "0cc175b9c0f1b6a831c399e269772661");
  EXPECT_EQ(md5_hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(md5_hex("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(md5_hex("abcdefghijklmnopqrstuvwxyz"), "c3fcd3d76192e4007dfb496cca67e13b");
  EXPECT_EQ(md5_hex("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"),
            "d174ab98d277d9f5a5611c2c9f419d9f");
  EXPECT_EQ(md5_hex("1234567890123456789012345678901234567890"
                    "1234567890123456789012345678901234567890"),
            "57edf4a22be3c955ac49da2e2107b67a");
}

TEST(Md5, EveryLengthOfTheLastBlock) {
  // The digest of the digests of 0 to 199 bytes 'x', from Python's hashlib.
  std::string all;
  for (std::size_t length = 0; length < 200; ++length) {
    all += md5_hex(std::string(length, 'x'));
  }
  EXPECT_EQ(md5_hex(all), "0f0e2ac786e6a42eac7e7de3a518cd0c");
}

// The name of the index cache of a known data set.
TEST(Md5, MegatronsCacheName) {
  EXPECT_EQ(md5_hex("GPT Dataset\n\nData prefix data/my-gpt2_text_document\nDataset name train\n"
                    "Number of samples 20\nNumber of epochs 3\nSequence length 4\n"
                    "Random seed 1234\nSplit 969, 30, 1\n"),
            "563708ba0c183a9d34979acb61c46b4f");
}

}  // namespace
}  // namespace bloomery
