// `bloomery bench offload`: how fast an optimizer's state that lies on the host is updated, beside
// what the memory and the disk give to a program that does nothing else.
#include <chrono>
#include <cstring>
#include <functional>
#include <iomanip>
#include <thread>

#include "apps/bench/bench.h"
#include "apps/common/command_line.h"
#include "apps/common/device_choice.h"
#include "device/host_side.h"
#include "optim/optimizer.h"

namespace bloomery {
namespace {

struct BenchOffloadOptions {
  DeviceChoice device;
  std::int64_t elements = 1 << 25, parts = 8;
  std::string folder;
  std::int64_t block_bytes = 1 << 20, queue_depth = 16, threads = 2;
  int repeats = 5;
};

void describe(OptionTable& t, BenchOffloadOptions& o) {
  t.section("offload");
  describe(t, o.device);
  t.add("elements", o.elements, "Number of weights.", between(1 << 14, 1e12));
  t.add("parts", o.parts, "Number of parts, updated one after another.", between(1, 1e6));
  t.add("offload-folder", o.folder, "Folder for the state; none: memory.");
  t.add("aio-block-size", o.block_bytes, "Block size in bytes.", between(4096, 1 << 30));
  t.add("aio-queue-depth", o.queue_depth, "Blocks in flight.", between(1, 4096));
  t.add("aio-thread-count", o.threads, "Threads where io_uring is missing.", between(1, 256));
  t.add("repeats", o.repeats, "Number of repetitions; the best counts.", between(1, 1000));
}

double best_seconds(int repeats, const std::function<void()>& work) {
  double best = 1e30;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// Bytes a second that all threads copy, read and written.
double copy_rate(Stream& host, std::size_t bytes, int repeats) {
  const auto half = static_cast<std::int64_t>(bytes / 2);
  const Tensor from = Tensor::zeros(host, DType::uint8, {half});
  const Tensor to = Tensor::zeros(host, DType::uint8, {half});
  host.synchronize();
  const double seconds = best_seconds(repeats, [&] {
    host.device().pool().for_ranges(half, 1 << 20, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(static_cast<char*>(to.data()) + begin, static_cast<char*>(from.data()) + begin,
                  static_cast<std::size_t>(end - begin));
    });
  });
  return 2.0 * static_cast<double>(half) / seconds;
}

BlockIoOptions io_options(const BenchOffloadOptions& o) {
  return {.block_bytes = static_cast<std::size_t>(o.block_bytes),
          .queue_depth = static_cast<int>(o.queue_depth),
          .threads = static_cast<int>(o.threads)};
}

// Bytes a second of a file that is read while another is written, past the system's cache.
double file_rate(const BenchOffloadOptions& o, Stream& host, std::size_t bytes) {
  const std::size_t each = bytes / 2 / kDirectAlignment * kDirectAlignment;
  constexpr std::size_t kBuffer = std::size_t{16} << 20;
  ScratchFile in(o.folder, each), out(o.folder, each);
  const auto pass = [&](ScratchFile& file, BlockIo::Direction direction) {
    BlockIo io(io_options(o));
    const PinnedMemory memory(host.device().kind(), kBuffer);
    std::memset(memory.data(), 1, kBuffer);
    for (std::size_t at = 0; at < each; at += kBuffer) {
      io.transfer(file, direction, at, memory.data(), std::min(kBuffer, each - at));
    }
  };
  pass(in, BlockIo::Direction::write);
  const double seconds = best_seconds(o.repeats, [&] {
    std::thread reader([&] { pass(in, BlockIo::Direction::read); });
    pass(out, BlockIo::Direction::write);
    reader.join();
  });
  return 2.0 * static_cast<double>(each) / seconds;
}

FlatShard make_shard(const BenchOffloadOptions& o, Stream& stream, Stream& host,
                     StateFiles* files) {
  const std::int64_t count = o.elements / kUnitSize * kUnitSize;
  FlatShard shard;
  shard.form = WeightForm::master;
  shard.value = Tensor::zeros(stream, DType::bf16, {count});
  shard.grad = Tensor::zeros(stream, DType::fp32, {count});
  shard.unit_flags = Tensor::zeros(stream, DType::uint8, {num_units(count)});
  shard.master = files != nullptr ? files->zeros(DType::fp32, count)
                                  : Tensor::zeros(host, DType::fp32, {count});
  shard.host_flags = Tensor::zeros(host, DType::uint8, {num_units(count)});
  shard.placement = files != nullptr ? Placement::file : Placement::host;
  shard.host = &host;
  shard.files = files;
  const std::int64_t part = std::max(kUnitSize, count / o.parts / kUnitSize * kUnitSize);
  for (std::int64_t first = 0; first < count; first += part) {
    shard.host_parts.push_back({shard.host_parts.size(), first, std::min(part, count - first)});
  }
  return shard;
}

}  // namespace

int bench_offload(const Arguments& arguments, std::ostream& out) {
  BenchOffloadOptions o;
  OptionTable table;
  describe(table, o);
  if (!read_options(
          table, arguments, out,
          "usage: bloomery bench offload [OPTIONS]\n\nMeasures optimizer updates in host memory or "
          "files.\n\nexample:\n  bloomery bench offload --offload-folder scratch\n")) {
    return 0;
  }
  Device device(o.device.options());
  Stream stream(device);
  HostSide side(device);
  Stream copies(device, StreamMode::queued);
  std::unique_ptr<StateFiles> files;
  if (!o.folder.empty()) {
    files = std::make_unique<StateFiles>(side.stream(), o.folder, io_options(o));
  }
  Optimizer optimizer(stream, {}, {make_shard(o, stream, side.stream(), files.get())}, &copies);
  const auto step = [&] {
    optimizer.step({}, 1);
    optimizer.on_host()->finish();
    stream.synchronize();
  };
  step();
  const double seconds = best_seconds(o.repeats, step);
  // Gradient and state are read, state and rounded weights written; files hold the state alone.
  const double moved = static_cast<double>(o.elements) * 30;
  const double in_files = static_cast<double>(o.elements) * 24;
  const double memory = copy_rate(side.stream(), std::size_t{1} << 30, o.repeats);
  out << std::fixed << std::setprecision(2) << o.elements << " weights updated on the host in "
      << seconds << " s: " << moved / seconds / 1e9 << " GB/s of memory, which copies at "
      << memory / 1e9 << " (" << moved / seconds / memory << " of it)\n";
  if (files) {
    const double disk = file_rate(o, side.stream(), static_cast<std::size_t>(in_files));
    out << "state in files by " << files->method() << ": " << in_files / seconds / 1e9
        << " GB/s read and written; the disk alone " << disk / 1e9 << " ("
        << in_files / seconds / disk << " of it)\n";
  }
  return 0;
}

}  // namespace bloomery
