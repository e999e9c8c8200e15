#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "apps/bloomery.h"
#include "apps/launch/plan.h"
#include "apps/launch/rendezvous.h"
#include "base/log.h"

namespace bloomery {

void read_settings(const std::string& text, MeetingOptions& options) {
  std::istringstream settings(text);
  for (std::string setting; std::getline(settings, setting, ',');) {
    const std::size_t equals = std::min(setting.find('='), setting.size());
    const std::string key = setting.substr(0, equals);
    const std::string value = equals < setting.size() ? setting.substr(equals + 1) : "";
    if (key == "join_timeout" || key == "last_call_timeout" || key == "timeout") {
      const std::optional<int> seconds = count_from(value);
      check(seconds.has_value(), "--rdzv_conf: ", setting, " is not a number of seconds");
      (key == "last_call_timeout" ? options.last_call_seconds : options.join_seconds) = *seconds;
    } else if (key == "is_host") {
      const bool yes = value == "1" || value == "true" || value == "True";
      check(yes || value == "0" || value == "false" || value == "False", "--rdzv_conf: ", setting,
            " is neither is_host=1 nor is_host=0");
      options.is_host = yes ? 1 : 0;
    } else {
      check(key == "close_timeout" || key == "read_timeout" || key == "keep_alive_interval" ||
                key == "keep_alive_max_attempt" || key == "heartbeat_timeout" ||
                key == "store_type" || key == "use_libuv",
            "--rdzv_conf: ", setting,
            " is unknown; there are join_timeout, last_call_timeout and is_host");
    }
  }
}

int attend_node(int descriptor) {
  const Socket node(descriptor);
  std::string told;
  bool orders_end = false;
  for (;;) {
    pollfd waits[2] = {{node.descriptor(), POLLIN, 0}, {orders_end ? -1 : STDIN_FILENO, POLLIN, 0}};
    char bytes[256];
    if (poll(waits, 2, -1) < 0 && errno != EINTR) {
      return 1;
    }
    if (waits[1].revents != 0) {
      const ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
      orders_end = count <= 0;
      send_all(node, {bytes, static_cast<std::size_t>(std::max<ssize_t>(count, 0))});
    }
    if (waits[0].revents != 0) {
      const ssize_t count = recv(node.descriptor(), bytes, sizeof bytes, 0);
      told.append(bytes, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
      if (told.ends_with('\n')) {
        const int code = std::atoi(told.c_str());
        const bool asked = told.find(kAsked) != told.npos;
        return code != 0 && asked ? static_cast<int>(kStoppedEarly) : code;
      }
      if (count <= 0) {
        Log().error("the node at ", peer_address(node), " was lost");
        return 1;
      }
    }
  }
}

}  // namespace bloomery
