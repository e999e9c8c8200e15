// A communicator of NCCL: its calls, and its end when a rank fails.
//
// It never blocks in NCCL. Whoever starts a call waits until NCCL has taken it, and meanwhile sees
// when the world fails. So no thread is inside NCCL for long, and another one can end the
// communicator between two calls: nobody has a handle that was freed.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "comm/nccl/nccl_library.h"
#include "comm/tcp/socket.h"
#include "comm/world.h"

namespace bloomery {

class NcclHandle {
 public:
  // Collective over `host`, which outlives it. An Error when a rank fails meanwhile. The end of
  // another rank is told by the control plane, which knows whose it was: an error that NCCL found
  // by itself counts after so many seconds without that.
  NcclHandle(std::shared_ptr<const NcclLibrary> nccl, HostGroup& host,
             double explanation_seconds = 5);
  // Ends it together with the others, or at once if a rank failed or an exception is on its way:
  // they may never come then.
  ~NcclHandle();
  NcclHandle(const NcclHandle&) = delete;
  NcclHandle& operator=(const NcclHandle&) = delete;

  // Calls `work`, which returns what NCCL returned, and waits until NCCL has taken what it was
  // given, at most for the world's timeout. Throws what went wrong, or the world's failure. Several
  // calls between ncclGroupStart and ncclGroupEnd are one `work`.
  void call(const char* name, const std::function<int(NcclLibrary::Comm)>& work);

  const NcclLibrary& library() const { return *nccl_; }

 private:
  void connect();
  void wait_until_taken(std::unique_lock<std::mutex>& lock, int result, const char* name,
                        double seconds = 0);
  void check_usable() const;
  void end_soon() noexcept;  // by a thread of its own: others end theirs meanwhile
  void abort() noexcept;
  std::string asynchronous_error();  // empty: none, or it is not due yet

  const std::shared_ptr<const NcclLibrary> nccl_;
  HostGroup& host_;
  World* const world_;  // null: nobody else can fail
  const double explanation_seconds_;
  const int exceptions_ = std::uncaught_exceptions();
  std::mutex mutex_;                      // of whoever is inside NCCL
  NcclLibrary::Comm comm_ = nullptr;      // null: before, or it has ended
  std::optional<Deadline> error_is_due_;  // of an error that NCCL has told of
  std::thread ending_;
  int reaction_ = -1, check_ = -1;
};

}  // namespace bloomery
