#include "checkpoint/pickle/pickle.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "checkpoint/pickle/state_dict.h"

namespace bloomery {
namespace {

using Kind = PickleNode::Kind;
using std::string_literals::operator""s;

constexpr std::string_view kKnown[] = {"collections OrderedDict"};

Pickle read(const std::string& bytes) {
  return read_pickle(std::as_bytes(std::span(bytes)), "test", {kKnown});
}

std::string complaint(const std::string& bytes) {
  try {
    const Pickle pickle = read(bytes);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Pickle, ReadsNumbersOfAllWidths) {
  const std::string bytes =
      "\x80\x02(K\x07M\x01\x02J\xff\xff\xff\xff\x8a\x02\x00\x80\x8a\x00NG?\xf0\0\0\0\0\0\0t."s;
  const Pickle pickle = read(bytes);
  const PickleNode& root = pickle[pickle.root];
  ASSERT_EQ(root.kind, Kind::tuple);
  ASSERT_EQ(root.children.size(), 7u);
  const std::int64_t expected[] = {7, 513, -1, -32768, 0};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(pickle[root.children[i]].integer, expected[i]);
  }
  EXPECT_EQ(pickle[root.children[5]].kind, Kind::none);
  EXPECT_EQ(std::bit_cast<double>(pickle[root.children[6]].integer), 1.0);
}

TEST(Pickle, ValuesThatAreKeptExistOnce) {
  const std::string bytes =
      "\x80\x02]q\x05(h\x05h\x05"
      "e."s;
  const Pickle pickle = read(bytes);
  const PickleNode& root = pickle[pickle.root];
  EXPECT_EQ(root.children, (std::vector<std::uint32_t>{pickle.root, pickle.root}));
}

// An instruction of one byte makes tens of bytes of memory: a pickle full of them must end early.
TEST(Pickle, ManyTinyValuesAreRefused) {
  for (const char instruction : {'}', ']', '(', '\x94', '\x85'}) {
    const std::string said =
        complaint("\x80\x04N" + std::string(kMaxPickleValues + 1, instruction));
    EXPECT_NE(said.find("too many for a state dict"), std::string::npos) << said;
  }
}

TEST(Pickle, UsesTheInputUpToItsEnd) {
  const std::string bytes = "\x80\x02N.rest"s;
  EXPECT_EQ(read(bytes).bytes, 4u);
}

TEST(Pickle, RefusesWhatIsMalformed) {
  EXPECT_NE(complaint(""), "");
  EXPECT_NE(complaint("N."s), "");
  EXPECT_NE(complaint("\x80\x09N."s), "");                  // protocol
  EXPECT_NE(complaint("\x80\x02."s), "");                   // empty stack
  EXPECT_NE(complaint("\x80\x02N"s), "");                   // no end
  EXPECT_NE(complaint("\x80\x02t."s), "");                  // no mark
  EXPECT_NE(complaint("\x80\x02N(\x85."s), "");             // takes across the mark
  EXPECT_NE(complaint("\x80\x02h\x01."s), "");              // nothing kept
  EXPECT_NE(complaint("\x80\x02}(Nu."s), "");               // key without value
  EXPECT_NE(complaint("\x80\x02NNa."s), "");                // append to None
  EXPECT_NE(complaint("\x80\x02X\xff\xff\xff\x7f."s), "");  // long text
  EXPECT_NE(complaint("\x80\x02\x8a\x0a"
                      "01234567."s),
            "");                              // long integer, cut off
  EXPECT_NE(complaint("\x80\x02N)R."s), "");  // call of None
  EXPECT_NE(complaint("\x80\x02"
                      "ccollections\nOrderedDict"s),
            "");  // name without end
  EXPECT_EQ(complaint("\x80\x02"
                      "ccollections\nOrderedDict\n)R."s),
            "");
}

TEST(Pickle, NamesUnknownGlobalsAndInstructions) {
  EXPECT_NE(complaint("\x80\x02"
                      "cos\nsystem\n."s)
                .find("os.system"),
            std::string::npos);
  EXPECT_NE(complaint("\x80\x04\x8c\x02os\x8c\x06system\x93."s).find("os.system"),
            std::string::npos);
  EXPECT_NE(complaint("\x80\x02i."s).find("instruction 105"), std::string::npos);
}

TEST(StateDict, AskedForMoreThanTheStorageHas) {
  // {"a": _rebuild_tensor_v2(storage of 4 floats, offset, (size,), (stride,), False, {})}
  const auto tensor = [](char offset, char size, char stride) {
    return "\x80\x02}X\x01\0\0\0a"s + "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storage"s +
           "ctorch\nFloatStorage\nX\x01\0\0\0"
           "0X\x03\0\0\0cpuK\x04tQK"s +
           offset + "K" + size + "\x85K" + stride + "\x85\x89}tRs."s;
  };
  const auto fits = [&](char offset, char size, char stride) {
    const std::string bytes = tensor(offset, size, stride);
    try {
      read_state_dict(read_torch_pickle(std::as_bytes(std::span(bytes)), "test"), "test");
    } catch (const Error&) {
      return false;
    }
    return true;
  };
  EXPECT_TRUE(fits(0, 4, 1));
  EXPECT_TRUE(fits(3, 1, 9));
  EXPECT_TRUE(fits(0, 2, 3));
  EXPECT_TRUE(fits(9, 0, 1));
  EXPECT_FALSE(fits(1, 4, 1));
  EXPECT_FALSE(fits(0, 3, 2));
  EXPECT_FALSE(fits(0, 5, 0));  // repeated more often than stored
}

}  // namespace
}  // namespace bloomery
