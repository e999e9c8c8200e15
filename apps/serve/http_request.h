// One request to a server over plain HTTP, and its whole answer.
#pragma once

#include <string>

namespace bloomery {

struct HttpAnswer {
  int status = 0;
  std::string body;
};

// An Error says that it is no address, before anybody is asked.
void check_server_address(const std::string& server);

// `server` is HOST:PORT, or HOST for port 80. An Error says that it is no address, that nobody
// answers there, or that the answer is no HTTP.
HttpAnswer put_json(const std::string& server, const std::string& path, const std::string& json,
                    const std::string& api_key);

}  // namespace bloomery
