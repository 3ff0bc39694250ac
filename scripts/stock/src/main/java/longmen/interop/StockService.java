package longmen.interop;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** A small service that registers itself as any user of the starter would have it. */
@SpringBootApplication
public class StockService {
    public static void main(String[] arguments) {
        SpringApplication.run(StockService.class, arguments);
    }
}
