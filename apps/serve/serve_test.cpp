#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/common/command_case.h"
#include "apps/serve/engine_room.h"

namespace bloomery {
namespace {

// The memory decides between room for one sequence and room for all.
TEST(Serve, CacheTokensFollowFromMemory) {
  const EngineOptions options{.num_sequences = 8, .capacity = 1000};  // 16 pages each
  constexpr std::size_t kPageBytes = 1 << 20;
  const auto tokens = [&](double bytes) { return cache_tokens(bytes, kPageBytes, options); };
  EXPECT_EQ(tokens(0), 16 * kCachePage);
  EXPECT_EQ(tokens(100.7 * kPageBytes), 100 * kCachePage);
  EXPECT_EQ(tokens(1e18), 8 * 16 * kCachePage);
  EXPECT_EQ(cache_tokens(1e18, 0, options), 8 * 16 * kCachePage);
}

// A port that another server has, while this object lives.
class BusyPort {
 public:
  BusyPort() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_, any, size), 0);
    EXPECT_EQ(listen(socket_, 1), 0);
    EXPECT_EQ(getsockname(socket_, any, &size), 0);
    number_ = ntohs(address.sin_port);
  }
  ~BusyPort() { close(socket_); }
  BusyPort(const BusyPort&) = delete;
  BusyPort& operator=(const BusyPort&) = delete;
  std::string number() const { return std::to_string(number_); }

 private:
  int socket_, number_ = 0;
};

// Before the model is loaded: it need not even be there.
TEST(Serve, APortOfAnotherServerIsCodeTwo) {
  const BusyPort port;
  const Outcome outcome = run_command({"serve", "--load", "nowhere", "--port", port.number()});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(outcome.says("already in use") && outcome.says("another --port")) << outcome.errors;
}

// The flags of examples/run_text_generation_server_345M.sh are good: the port alone is at fault.
TEST(Serve, MegatronsScriptIsAccepted) {
  const BusyPort port;
  testing::internal::CaptureStderr();
  const Outcome outcome = run_command({"tools/run_text_generation_server.py",
                                       "--tensor-model-parallel-size",
                                       "1",
                                       "--pipeline-model-parallel-size",
                                       "1",
                                       "--num-layers",
                                       "24",
                                       "--hidden-size",
                                       "1024",
                                       "--load",
                                       "nowhere",
                                       "--num-attention-heads",
                                       "16",
                                       "--max-position-embeddings",
                                       "1024",
                                       "--tokenizer-type",
                                       "GPT2BPETokenizer",
                                       "--fp16",
                                       "--micro-batch-size",
                                       "1",
                                       "--seq-length",
                                       "1024",
                                       "--out-seq-length",
                                       "1024",
                                       "--temperature",
                                       "1.0",
                                       "--vocab-file",
                                       "vocab.json",
                                       "--merge-file",
                                       "merges.txt",
                                       "--top_p",
                                       "0.9",
                                       "--top_k",
                                       "5",
                                       "--seed",
                                       "42",
                                       "--ds-inference",
                                       "--port",
                                       port.number()});
  const std::string notes = testing::internal::GetCapturedStderr();
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(outcome.says("already in use")) << outcome.errors;
  EXPECT_NE(notes.find("--ds-inference is ignored: this command runs the model"), notes.npos)
      << notes;
}

TEST(Serve, MegatronsNameMeansItsPort) {
  const auto port = [](const std::string& name) {
    const std::string page = run_command({name, "--help"}).out;
    const std::size_t begin = page.find("\n  --port"), end = page.find("\n  --api-key-file");
    return begin < end ? page.substr(begin, end - begin) : "";
  };
  EXPECT_NE(port("run_text_generation_server").find("5000"), std::string::npos);
  EXPECT_NE(port("serve").find("8000"), std::string::npos);
}

}  // namespace
}  // namespace bloomery
