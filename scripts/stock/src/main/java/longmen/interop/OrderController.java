package longmen.interop;

import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.shenyu.client.springmvc.annotation.ShenyuSpringMvcClient;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** Endpoints registered one by one. Each answer says which instance gave it. */
@RestController
@RequestMapping("/order")
public class OrderController {
    private final int port;

    public OrderController(@Value("${server.port}") int port) {
        this.port = port;
    }

    @GetMapping("/findById")
    @ShenyuSpringMvcClient(path = "/findById", desc = "one order")
    public Map<String, Object> findById(@RequestParam("id") String id) {
        return answer("findById", id);
    }

    @GetMapping("/path/{id}/{name}")
    @ShenyuSpringMvcClient(path = "/path/**", desc = "parts of the path")
    public Map<String, Object> path(@PathVariable String id, @PathVariable String name) {
        return answer("path", id + "/" + name);
    }

    @PostMapping("/save")
    @ShenyuSpringMvcClient(path = "/save", desc = "takes a body")
    public Map<String, Object> save(@RequestBody Map<String, Object> order) {
        return answer("save", order.get("name"));
    }

    private Map<String, Object> answer(String call, Object value) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("port", port);
        answer.put("call", call);
        answer.put("value", value);
        return answer;
    }
}
