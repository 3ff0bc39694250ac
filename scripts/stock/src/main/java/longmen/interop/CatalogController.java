package longmen.interop;

import java.util.Map;
import org.apache.shenyu.client.springmvc.annotation.ShenyuSpringMvcClient;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

/** Endpoints registered by one annotation on the class. */
@RestController
@RequestMapping("/catalog")
@ShenyuSpringMvcClient("/catalog/**")
public class CatalogController {
    @GetMapping("/{id}")
    public Map<String, Object> item(@PathVariable String id) {
        return Map.of("call", "item", "value", id);
    }
}
